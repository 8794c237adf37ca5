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
from waybill_convert.commands.submit.requests import File, FileChanged, Form, Sent

_PATIENCE = 600.0
"""Seconds that "too fast, wait" is obeyed before we give up."""
_OUTAGE = 60.0
"""Seconds that a server may be away while we only look: long enough for it to be replaced."""
_LOOK_AGAIN = 1.0
_BUSY = frozenset({429, 502, 503, 504})

Waiting = Callable[[float], None]
"""Called with the seconds that the API asked us to wait."""


class ApiFailed(WaybillError):
    """The API refused."""

    of_request = False
    """Whether it is about what one request brought: less at once might do."""


class ApiAway(ApiFailed):
    """Nobody answers."""


class Api:
    """A connection to the API with one key."""

    def __init__(self, url: str, key: str, *, outage: float = _OUTAGE) -> None:
        try:
            self._http = httpx.Client(
                base_url=url,
                headers={"Authorization": f"Bearer {key}"},
                timeout=httpx.Timeout(60.0, connect=10.0, write=60.0),
            )
        except (httpx.InvalidURL, UnicodeEncodeError, ValueError) as error:
            raise ApiFailed(f"That is no address, or no key: {error}") from error
        self._url = url
        self._outage = outage

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
            gone_out = dict.fromkeys(batch, 0)

            def count(file: File, size: int, gone_out: dict[File, int] = gone_out) -> None:
                gone_out[file] += size
                sent(file, size)

            form = Form(batch, fields, count)
            response = self._ask("POST", "/api/uploads", content=iter(form), headers=form.headers)
            if response.status_code < 400:
                break
            for file, size in gone_out.items():
                sent(file, -size)  # it goes out again, or not at all
            wait = _retry_after(response)
            waited += wait
            if response.status_code not in (429, 503) or waited > _PATIENCE:
                raise _refused(response)
            waiting(wait)
            time.sleep(wait)
        found = _json(response).get("files")
        if not isinstance(found, list) or len(found) != len(batch):
            raise ApiFailed(f"What answers at {self._url} is no Waybill.")
        return found

    def job(self, job_id: str) -> dict[str, Any]:
        """A job as it is now."""
        return _json(self._look(f"/api/jobs/{job_id}"))

    def download(self, job_id: str, target: Path) -> None:
        """Write a job's result to a file, whole or not at all."""
        response = self._look(f"/api/jobs/{job_id}/download")
        if response.status_code >= 400:
            raise _refused(response)
        try:
            write_atomic(target, response.content)
        except OSError as error:
            raise ApiFailed(f"{target} cannot be written: {error.strerror or error}.") from error

    def _look(self, path: str) -> httpx.Response:
        """Ask something that can be asked again, also if the server is away for a moment."""
        until = time.monotonic() + self._outage
        while True:
            try:
                response = self._ask("GET", path)
            except ApiAway:
                if time.monotonic() > until:
                    raise
            else:
                if response.status_code not in _BUSY or time.monotonic() > until:
                    return response
            time.sleep(min(_LOOK_AGAIN, self._outage))

    def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **more)
        except FileChanged as error:
            raise ApiFailed(str(error)) from error
        except httpx.TransportError as error:
            raise ApiAway(f"Nothing answers at {self._url} ({error}). Is Waybill running there?") from error


def _retry_after(response: httpx.Response) -> float:
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else 5.0


def _json(response: httpx.Response) -> dict[str, Any]:
    if response.status_code >= 400:
        raise _refused(response)
    try:
        found = response.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ApiFailed(f"What answers at {response.url.copy_with(path='', query=None)} is no Waybill.")
    return found


def _refused(response: httpx.Response) -> ApiFailed:
    """What the API says is wrong, in its own words."""
    try:
        problem = response.json()
        said, code = str(problem["detail"]), problem.get("code")
    except (ValueError, KeyError, TypeError, AttributeError):
        said, code = f"The API answered {response.status_code} {response.reason_phrase}.", None
    if response.status_code == httpx.codes.UNAUTHORIZED:
        said = f"{said} `waybill apikey ls` lists the keys there are."
    failed = ApiFailed(said)
    # Too many bytes, or a form that is not to its taste, which too many files are.
    failed.of_request = code in ("TOO_LARGE", "VALIDATION_ERROR")
    return failed
