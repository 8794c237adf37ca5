"""Draws pages with the gateway, which opens documents in a sandbox."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

import httpx

from waybill.errors import (
    DocumentFault,
    GatewayTimedOut,
    GatewayUnavailable,
    GatewayUnreachable,
    NotFound,
    TooLarge,
    WaybillError,
)
from waybill.http.streamed_form import StreamedForm
from waybill.messages import msg
from waybill.storage import Storage
from waybill_convert.clients.gateway_http import GatewayConnections, json_object, read_body, say_as, seconds_to_wait

_PATIENCE = 60.0
"""Seconds for one page, including the wait for a busy gateway."""
_MOST_BYTES = 64 * 1024 * 1024
_NO_SUCH_PAGE = "no_such_page"
_PNG = b"\x89PNG\r\n\x1a\n"


class GatewayRenderer:
    def __init__(self, url: str, storage: Storage, secrets: Sequence[bytes] = ()) -> None:
        self._storage = storage
        self._connections = GatewayConnections(url, _PATIENCE, secrets)

    async def close(self) -> None:
        await self._connections.close()

    async def render(self, upload_key: str, size: int, *, page: int, scale: int, job_id: uuid.UUID) -> bytes:
        """A page of the stored PDF as PNG. NotFound if there is no such page."""
        with self._connections.span("/render"):
            return await self._render(upload_key, size, page, scale, job_id)

    async def _render(self, upload_key: str, size: int, page: int, scale: int, job_id: uuid.UUID) -> bytes:
        try:
            async with asyncio.timeout(_PATIENCE):
                while True:
                    answer = await self._ask(upload_key, size, page, scale, job_id)
                    if isinstance(answer, bytes):
                        return answer
                    # The gateway is busy with conversions. Somebody looks at an empty page, so we wait for it.
                    await asyncio.sleep(answer)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise GatewayUnreachable(msg("convert.gateway.unreachable")) from error
        except (httpx.TimeoutException, TimeoutError) as error:
            raise GatewayTimedOut(msg("convert.gateway.page_timeout")) from error
        except httpx.TransportError as error:
            raise GatewayUnavailable(msg("convert.gateway.connection_lost")) from error

    async def _ask(self, upload_key: str, size: int, page: int, scale: int, job_id: uuid.UUID) -> bytes | float:
        """The picture, or how many seconds to wait before we ask again."""
        form = StreamedForm({"page": str(page), "scale": str(scale)}, size)
        content = form.body(self._storage.stream(upload_key))
        headers = {"X-Job-Id": str(job_id), **form.headers}
        async with self._connections.post("/render", content=content, headers=headers) as response:
            if response.status_code in (429, 503):
                return min(seconds_to_wait(response.headers.get("Retry-After", ""), 1.0), 5.0)
            body = await read_body(response, _MOST_BYTES)
        if response.status_code != httpx.codes.OK:
            raise _refusal(response.status_code, body)
        if not body.startswith(_PNG):
            raise GatewayUnavailable(msg("convert.gateway.no_picture"))
        return body


def _refusal(status: int, body: bytes) -> WaybillError:
    problem = json_object(body)
    if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        return say_as(problem, TooLarge())
    if not 400 <= status < 500:
        return GatewayUnavailable(detail={"status": status})
    if problem.get("fault") == _NO_SUCH_PAGE:
        return NotFound(msg("convert.gateway.no_page"))
    return say_as(problem, DocumentFault(msg("convert.gateway.page_refused")))
