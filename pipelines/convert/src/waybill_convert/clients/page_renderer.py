"""Has the gateway draw pages and take out attachments. It opens documents in a sandbox."""

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
from waybill.gateway_client.connections import GatewayConnections, json_object, read_body, say_as, seconds_to_wait
from waybill.http.streamed_form import StreamedForm
from waybill.messages import msg
from waybill.storage import Storage

_PATIENCE = 60.0
"""Seconds for one page or file, including the wait for a busy gateway."""
_MOST_BYTES = 64 * 1024 * 1024
_NO_SUCH_PAGE = "no_such_page"
_NO_SUCH_ATTACHMENT = "no_such_attachment"
_PNG = b"\x89PNG\r\n\x1a\n"


class GatewayRenderer:
    def __init__(self, url: str, storage: Storage, secrets: Sequence[bytes] = ()) -> None:
        self._storage = storage
        self._connections = GatewayConnections(url, _PATIENCE, secrets)

    async def close(self) -> None:
        await self._connections.close()

    async def render(self, upload_key: str, size: int, *, page: int, scale: int, job_id: uuid.UUID) -> bytes:
        """A page of the stored PDF as PNG. NotFound if there is no such page."""
        image = await self._get("/render", upload_key, size, {"page": str(page), "scale": str(scale)}, job_id)
        if not image.startswith(_PNG):
            raise GatewayUnavailable(msg("convert.gateway.no_picture"))
        return image

    async def attachment(self, upload_key: str, size: int, *, number: int, job_id: uuid.UUID) -> bytes:
        """A file that is embedded in the stored PDF. NotFound if there is no such attachment."""
        return await self._get("/attachment", upload_key, size, {"number": str(number)}, job_id)

    async def _get(self, path: str, upload_key: str, size: int, fields: dict[str, str], job_id: uuid.UUID) -> bytes:
        with self._connections.span(path):
            return await self._patiently(path, upload_key, size, fields, job_id)

    async def _patiently(
        self, path: str, upload_key: str, size: int, fields: dict[str, str], job_id: uuid.UUID
    ) -> bytes:
        try:
            async with asyncio.timeout(_PATIENCE):
                while True:
                    answer = await self._ask(path, upload_key, size, fields, job_id)
                    if isinstance(answer, bytes):
                        return answer
                    # The gateway is busy with conversions. Somebody looks at an empty page, so we wait for it.
                    await asyncio.sleep(answer)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise GatewayUnreachable(msg("gateway_call.unreachable")) from error
        except (httpx.TimeoutException, TimeoutError) as error:
            raise GatewayTimedOut(msg("convert.gateway.page_timeout")) from error
        except httpx.TransportError as error:
            raise GatewayUnavailable(msg("gateway_call.connection_lost")) from error

    async def _ask(
        self, path: str, upload_key: str, size: int, fields: dict[str, str], job_id: uuid.UUID
    ) -> bytes | float:
        """The picture or the file, or how many seconds to wait before we ask again."""
        form = StreamedForm(fields, size)
        content = form.body(self._storage.stream(upload_key))
        headers = {"X-Job-Id": str(job_id), **form.headers}
        async with self._connections.post(path, content=content, headers=headers) as response:
            if response.status_code in (429, 503):
                return min(seconds_to_wait(response.headers.get("Retry-After", ""), 1.0), 5.0)
            body = await read_body(response, _MOST_BYTES)
        if response.status_code != httpx.codes.OK:
            raise _refusal(response.status_code, body)
        return body


def _refusal(status: int, body: bytes) -> WaybillError:
    problem = json_object(body)
    if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        return say_as(problem, TooLarge())
    if not 400 <= status < 500:
        return GatewayUnavailable(detail={"status": status})
    if problem.get("fault") == _NO_SUCH_PAGE:
        return NotFound(msg("convert.gateway.no_page"))
    if problem.get("fault") == _NO_SUCH_ATTACHMENT:
        return NotFound(msg("convert.attachments.none"))
    return say_as(problem, DocumentFault(msg("convert.gateway.page_refused")))
