"""How commands call the API: with one key, patiently while it restarts, and with its own words when it refuses."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from waybill.console.upload_request import FileChanged, Sent, UploadFile, UploadRequest
from waybill.errors import WaybillError
from waybill.files import write_atomic

_PATIENCE = 600.0
"""Seconds for which we obey `Retry-After` before we give up."""
_OUTAGE = 60.0
"""Seconds for which the server may be unreachable while we poll; enough for a restart."""
_LOOK_AGAIN = 1.0
_BUSY = frozenset({429, 502, 503, 504})

Waiting = Callable[[float], None]
"""Called with the seconds that the API asked us to wait."""


class ApiFailed(WaybillError):
    """The API refused a request."""

    of_request = False
    """Whether a request with fewer files might succeed."""

    def __init__(self, message: str | None = None, problem: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.problem = problem or {}
        """The API's problem document, for what it says beside the sentence."""


class ApiAway(ApiFailed):
    """The API cannot be reached."""


class ApiClient:
    """A connection to the API with one key."""

    def __init__(self, url: str, key: str, *, outage: float = _OUTAGE) -> None:
        try:
            self._http = httpx.Client(
                base_url=url,
                headers={"Authorization": f"Bearer {key}"},
                timeout=httpx.Timeout(60.0, connect=10.0, write=60.0),
            )
        except (httpx.InvalidURL, UnicodeEncodeError, ValueError) as error:
            raise ApiFailed(f"The URL or the key is invalid: {error}") from error
        self._url = url
        self._outage = outage

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._http.close()

    def call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """The API's answer to one request, as JSON."""
        return self._json(self._ask(method, path, **more))

    def send(self, method: str, path: str) -> None:
        """One request whose answer has no content."""
        response = self._ask(method, path)
        if response.status_code >= 400:
            raise refused(response)

    def look(self, path: str) -> dict[str, Any]:
        """The API's answer to a GET request, which is repeated while the server is briefly unreachable."""
        return self._json(self._look(path))

    def post_files(self, path: str, form: UploadRequest, sent: Sent, waiting: Waiting) -> dict[str, Any]:
        """Send files, and again when the API asked us to wait. `sent` is called with a negative count before that."""
        waited = 0.0
        while True:
            gone_out: dict[UploadFile, int] = {}

            def count(file: UploadFile, size: int, gone_out: dict[UploadFile, int] = gone_out) -> None:
                gone_out[file] = gone_out.get(file, 0) + size
                sent(file, size)

            response = self._ask("POST", path, content=form.body(count), headers=form.headers)
            if response.status_code < 400:
                return self._json(response)
            for file, size in gone_out.items():
                sent(file, -size)  # it is sent again, or not at all
            wait = _retry_after(response)
            waited += wait
            if response.status_code not in (429, 503) or waited > _PATIENCE:
                raise refused(response)
            waiting(wait)
            time.sleep(wait)

    def save(self, path: str, target: Path) -> None:
        """Write what the API answers to a file, which is complete or absent."""
        until = time.monotonic() + self._outage
        while True:
            try:
                with self._http.stream("GET", path) as response:
                    if response.status_code in _BUSY and time.monotonic() < until:
                        pass
                    elif response.status_code >= 400:
                        response.read()
                        raise refused(response)
                    else:
                        write_atomic(target, response.iter_bytes())
                        return
            except OSError as error:
                raise ApiFailed(f"{target} cannot be written: {error.strerror or error}.") from error
            except httpx.TransportError as error:
                if time.monotonic() > until:
                    raise self._away(error) from error
            time.sleep(min(_LOOK_AGAIN, self._outage))

    def no_waybill(self) -> ApiFailed:
        return ApiFailed(f"The server at {self._url} is not Waybill.")

    def _look(self, path: str) -> httpx.Response:
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
            raise self._away(error) from error

    def _away(self, error: httpx.TransportError) -> ApiAway:
        return ApiAway(f"Cannot reach {self._url} ({error}). Is Waybill running there?")

    def _json(self, response: httpx.Response) -> dict[str, Any]:
        if response.status_code >= 400:
            raise refused(response)
        try:
            found = response.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ApiFailed(f"The server at {response.url.copy_with(path='', query=None)} is not Waybill.")
        return found


def _retry_after(response: httpx.Response) -> float:
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else 5.0


def refused(response: httpx.Response) -> ApiFailed:
    """The error, with the API's own message."""
    try:
        problem = response.json()
        said, code = str(problem["detail"]), problem.get("code")
    except (ValueError, KeyError, TypeError, AttributeError):
        problem, said, code = {}, f"The API answered {response.status_code} {response.reason_phrase}.", None
    if response.status_code == httpx.codes.UNAUTHORIZED:
        said = f"{said} `waybill apikey ls` lists all keys."
    failed = ApiFailed(said, problem)
    # Too many bytes, or an invalid form; too many files count as one.
    failed.of_request = code in ("TOO_LARGE", "VALIDATION_ERROR")
    return failed
