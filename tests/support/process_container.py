"""A container of a pod as a process of this machine, and what a kubelet would say about it."""

from __future__ import annotations

import contextlib
import datetime
import subprocess
import time
from pathlib import Path

import httpx

from support.child_processes import dying_with_us, kill_with_children
from support.cluster import Object
from support.pod_environment import PodEnvironment

_BACK_OFF = (0.0, 1.0, 2.0, 5.0, 10.0)


class ContainerRun:
    """A container, as a process."""

    def __init__(self, spec: Object, pod_uid: str, environment: PodEnvironment, folder: Path) -> None:
        self.name: str = spec["name"]
        self._pod_uid = pod_uid
        self._folder = folder
        self._spec = spec
        self._environment = environment
        self.process: subprocess.Popen[bytes] | None = None
        self.restarts = 0
        self.ready = False
        self._reason: str | None = None
        self._again = 0.0
        self._started = self._finished = ""
        self._last: Object = {}
        self._log = folder / f"{self.name}.log"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def id(self) -> str:
        return f"containerd://{self._pod_uid}-{self.name}-{self.restarts}"

    def start(self) -> None:
        self._started, self._finished, self._reason, self.ready = (
            timestamp(),
            "",
            None,
            "readinessProbe" not in self._spec,
        )
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                dying_with_us(self._environment.command(self._spec)),
                env=self._environment.variables(self._spec),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )

    def ended(self) -> int | None:
        code = self.process.poll() if self.process else None
        if code is not None:
            self.ready = False
            self._finished = self._finished or timestamp()
        return code

    def restart(self) -> None:
        """Start it again, at once the first time and later the more often it has ended."""
        self._again = self._again or time.monotonic() + _BACK_OFF[min(self.restarts, len(_BACK_OFF) - 1)]
        if time.monotonic() < self._again:
            return
        self._again = 0.0
        self._last = self._state()
        self.restarts += 1
        self.start()

    def terminate(self) -> None:
        if self.process:
            self.process.terminate()

    def kill(self, reason: str | None = None) -> None:
        """Kill the process; a kubelet would give this reason for it: `OOMKilled`."""
        self._reason = reason
        if self.process:
            kill_with_children(self.process)

    def probe(self, ports: dict[int, int]) -> None:
        """Ask the readiness probe."""
        probe = self._spec.get("readinessProbe", {}).get("httpGet")
        if probe is None or not self.is_running:
            return
        named = {port.get("name"): port["containerPort"] for port in self._spec.get("ports", ())}
        port = ports[named.get(probe["port"], probe["port"])]
        self.ready = False
        with contextlib.suppress(httpx.TransportError):
            self.ready = httpx.get(f"http://127.0.0.1:{port}{probe['path']}", trust_env=False, timeout=5).is_success

    def status(self) -> Object:
        return {
            "name": self.name,
            "image": self._spec["image"],
            "imageID": "",
            "containerID": self.id if self.process else "",
            "ready": self.ready if self.is_running else self._succeeded,
            "started": self.is_running,
            "restartCount": self.restarts,
            "state": self._state(),
            "lastState": self._last,
        }

    @property
    def _succeeded(self) -> bool:
        return self.process is not None and self.process.poll() == 0

    def text(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _state(self) -> Object:
        if self.process is None:
            return {"waiting": {"reason": "PodInitializing"}}
        code = self.process.poll()
        if code is None:
            return {"running": {"startedAt": self._started}}
        return {
            "terminated": {
                "containerID": self.id,
                "exitCode": code if code >= 0 else 128 - code,
                "reason": self._reason or ("Completed" if code == 0 else "Error"),
                "startedAt": self._started,
                "finishedAt": self._finished or timestamp(),
            }
        }


def timestamp() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
