"""The API as `waybill submit` uses it: upload a batch, look after jobs, fetch results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from waybill.errors import WaybillError
from waybill.files import write_atomic
from waybill_cli.submitting.batches import File, Form, Sent

_PATIENCE = 600.0
"""Seconds that "too fast, wait" is obeyed before we give up."""

Waiting = Callable[[float], None]
"""Called with the seconds that the API asked us to wait."""


class ApiFailed(WaybillError):
    """The API refused, or cannot be reached."""


class Api:
    """A connection to the API with one key."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(60.0, connect=10.0, write=60.0),
        )
        self._url = url

    def __enter__(self) -> Api:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._http.close()

    def upload(
        self, batch: Sequence[File], *, mapping: str | None, force: bool, sent: Sent, waiting: Waiting
    ) -> list[dict[str, Any]]:
        """Upload a batch; an entry for each file in its order, with its job or with the problem it has."""
        fields = {**({"mapping": mapping} if mapping else {}), **({"force": "true"} if force else {})}
        waited = 0.0
        while True:
            form = Form(batch, fields, sent)
            response = self._ask("POST", "/api/uploads", content=iter(form), headers=form.headers)
            if response.status_code != httpx.codes.TOO_MANY_REQUESTS:
                break
            wait = _retry_after(response)
            waited += wait
            if waited > _PATIENCE:
                raise ApiFailed(_problem(response))
            for file in batch:
                sent(file.path, -file.bytes)  # it goes out again
            waiting(wait)
            time.sleep(wait)
        if response.status_code >= 400:
            raise ApiFailed(_problem(response))
        files: list[dict[str, Any]] = response.json()["files"]
        return files

    def job(self, job_id: str) -> dict[str, Any]:
        """A job as it is now."""
        response = self._ask("GET", f"/api/jobs/{job_id}")
        if response.status_code >= 400:
            raise ApiFailed(_problem(response))
        job: dict[str, Any] = response.json()
        return job

    def download(self, job_id: str, target: Path) -> None:
        """Write a job's result to a file, whole or not at all."""
        response = self._ask("GET", f"/api/jobs/{job_id}/download")
        if response.status_code >= 400:
            raise ApiFailed(_problem(response))
        write_atomic(target, response.content)

    def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **more)
        except httpx.TransportError as error:
            raise ApiFailed(f"Nothing answers at {self._url} ({error}). Is Waybill running there?") from error


def _retry_after(response: httpx.Response) -> float:
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else 5.0


def _problem(response: httpx.Response) -> str:
    """What the API says is wrong, in its own words."""
    try:
        detail = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return f"The API answered {response.status_code} {response.reason_phrase}."
    if response.status_code == httpx.codes.UNAUTHORIZED:
        return f"{detail} `waybill apikey ls` lists the keys there are."
    return str(detail)
