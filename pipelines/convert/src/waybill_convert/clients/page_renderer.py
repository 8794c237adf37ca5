"""Pages drawn by the gateway, which opens documents where they can do no harm."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from waybill.errors import DocumentFault, GatewayTimedOut, GatewayUnavailable, NotFound, TooLarge, WaybillError
from waybill.http.streamed_form import StreamedForm
from waybill.storage import Storage

_PATIENCE = 60.0
"""Seconds for one page, waiting for a busy gateway included."""
_MOST_BYTES = 64 * 1024 * 1024
_NO_SUCH_PAGE = "no_such_page"
_PNG = b"\x89PNG\r\n\x1a\n"


class GatewayRenderer:
    def __init__(self, url: str, storage: Storage) -> None:
        self._storage = storage
        self._http = httpx.AsyncClient(
            base_url=url,
            timeout=httpx.Timeout(_PATIENCE, connect=5.0),
            follow_redirects=False,
            trust_env=False,  # the gateway is ours: no proxy stands between
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def render(self, upload_key: str, size: int, *, page: int, scale: int) -> bytes:
        """A page of the stored PDF as PNG. NotFound if it has no such page."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while True:
                    answer = await self._ask(upload_key, size, page, scale)
                    if isinstance(answer, bytes):
                        return answer
                    # Busy with conversions: somebody looks at an empty page meanwhile, so it is worth the wait.
                    await asyncio.sleep(answer)
        except httpx.ConnectTimeout as error:
            raise GatewayUnavailable("The gateway cannot be reached.") from error
        except (httpx.TimeoutException, TimeoutError) as error:
            raise GatewayTimedOut("The page was not drawn in time. Please try again.") from error
        except httpx.TransportError as error:
            raise GatewayUnavailable("The connection to the gateway failed.") from error

    async def _ask(self, upload_key: str, size: int, page: int, scale: int) -> bytes | float:
        """The picture, or how many seconds to wait before asking again."""
        form = StreamedForm({"page": str(page), "scale": str(scale)}, size)
        content = form.body(self._storage.stream(upload_key))
        async with self._http.stream("POST", "/render", content=content, headers=form.headers) as response:
            if response.status_code in (429, 503):
                said = response.headers.get("Retry-After", "")
                return min(float(said), 5.0) if said.isascii() and said.isdigit() else 1.0
            if response.status_code != httpx.codes.OK:
                raise _refusal(response.status_code, await _read(response))
            image = await _read(response)
        if not image.startswith(_PNG):
            raise GatewayUnavailable("The gateway's answer is no picture.")
        return image


async def _read(response: httpx.Response) -> bytes:
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > _MOST_BYTES:
            raise GatewayUnavailable("The gateway's answer is too large.")
    return bytes(read)


def _refusal(status: int, body: bytes) -> WaybillError:
    if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        return TooLarge()
    if not 400 <= status < 500:
        return GatewayUnavailable(detail={"status": status})
    problem = _problem(body)
    if problem.get("fault") == _NO_SUCH_PAGE:
        return NotFound("The document has no such page.")
    said = problem.get("detail")
    return DocumentFault(said if isinstance(said, str) else "The page cannot be drawn.")


def _problem(body: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return problem if isinstance(problem, dict) else {}
