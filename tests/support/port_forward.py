"""Requests to a service inside a cluster, through `kubectl port-forward`, which ends with the pod it leads to."""

from __future__ import annotations

import subprocess
import threading
import time
from typing import Any

import httpx

from support.child_processes import dying_with_us

_RETRIED = frozenset({502, 503, 504})


class PortForward:
    """A way to a service's port. It is made anew whenever its pod has gone."""

    def __init__(self, command: list[str], **client: Any) -> None:
        """`command` is `kubectl port-forward` with all but the address: any free port of loopback is taken."""
        self._command = dying_with_us(command)
        self._client = client
        self._process: subprocess.Popen[str] | None = None
        self._http: httpx.Client | None = None
        self._one_at_a_time = threading.Lock()

    def request(self, method: str, path: str, *, within: float = 120, **what: Any) -> httpx.Response:
        """The answer, once there is one. What is asked must not hurt if it is asked twice."""
        deadline = time.monotonic() + within
        while True:
            with self._one_at_a_time:
                try:
                    answer = self._connected().request(method, path, **what)
                    if answer.status_code not in _RETRIED:
                        return answer
                    said = f"{answer.status_code} {answer.text[:300]}"
                except httpx.TransportError as error:
                    said = repr(error)
                self._drop()
            if time.monotonic() > deadline:
                raise AssertionError(f"no answer to {method} {path} within {within:g} s: {said}")
            time.sleep(0.2)

    def close(self) -> None:
        with self._one_at_a_time:
            self._drop()

    def _connected(self) -> httpx.Client:
        if self._http is None:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True
            )
            assert self._process.stdout is not None
            said = self._process.stdout.readline()  # Forwarding from 127.0.0.1:41234 -> 8080
            if " -> " not in said:
                raise httpx.ConnectError("there is no pod to forward to")
            address = said.split(" -> ")[0].split()[-1]
            self._http = httpx.Client(base_url=f"http://{address}", trust_env=False, timeout=30, **self._client)
        return self._http

    def _drop(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
