"""The client of the gateway for batches: it has a ZIP unpacked, and bundles of files extracted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx

from waybill.config import load
from waybill.errors import GatewayUnavailable
from waybill.files import packs
from waybill.gateway_client.broken_calls import named_failures, slow_storage
from waybill.gateway_client.call_metrics import measured
from waybill.gateway_client.connections import GatewayConnections, read_body
from waybill.gateway_client.refusals import refusal
from waybill.gateway_client.source import Source
from waybill.http.streamed_form import StreamedForm
from waybill.messages import msg
from waybill_batches.settings import BatchSettings

MOST_PROBLEM_BYTES = 1024 * 1024
MOST_RESULT_BYTES = 256 * 1024 * 1024
"""What the gateway limits a result to by default."""


class BatchGateway:
    """A client of the gateway, shared by all jobs of a worker."""

    def __init__(self, settings: BatchSettings) -> None:
        self._timeout = settings.gateway_timeout
        self._most_file = settings.batch_max_file_mb * 2**20
        self._connections = GatewayConnections(settings.gateway_url, self._timeout, settings.gateway_secrets)

    async def close(self) -> None:
        await self._connections.close()

    async def unpack(self, source: Source, job_id: str) -> AsyncGenerator[packs.Frame, None]:
        """The members of a ZIP as they are unpacked, and the end frame. Close it if it is not read to the end.

        Any length of time may pass: the job has a limit, and each wait for the gateway has one.
        """
        form = StreamedForm({"job_id": job_id}, source.size)
        headers = {"Accept": packs.MEDIA_TYPE, "X-Job-Id": job_id, **form.headers}
        with self._connections.span("/unpack") as span, named_failures(source, self._timeout):
            async with self._connections.post("/unpack", content=form.body(source.read()), headers=headers) as response:
                span.set({"http.response.status_code": response.status_code})
                await _refuse_other(response, source)
                try:
                    async with aclosing(packs.frames(response.aiter_bytes(), most_bytes=self._most_file)) as frames:
                        async for frame in frames:
                            yield frame
                except packs.BadPack as error:
                    raise GatewayUnavailable(msg("batches.gateway.bad_pack", why=str(error))) from error

    @measured
    async def extract(self, source: Source, job_id: str) -> Sequence[packs.Frame]:
        """What was extracted from the documents in a pack, one frame for each, in their order."""
        headers = {
            "Accept": packs.MEDIA_TYPE,
            "Content-Type": packs.MEDIA_TYPE,
            "Content-Length": str(source.size),
            "X-Job-Id": job_id,
        }
        with self._connections.span("/extract") as span, named_failures(source, self._timeout):
            async with (
                asyncio.timeout(self._timeout),
                self._connections.post("/extract", content=source.read(), headers=headers) as response,
            ):
                span.set({"http.response.status_code": response.status_code})
                await _refuse_other(response, source)
                body = await read_body(response, MOST_RESULT_BYTES)
        decoder = packs.PackDecoder(most_bytes=MOST_RESULT_BYTES)
        try:
            *found, _end = decoder.feed(body)
            decoder.close()
        except (packs.BadPack, ValueError) as error:
            raise GatewayUnavailable(msg("batches.gateway.bad_pack", why=str(error))) from error
        return found


async def _refuse_other(response: httpx.Response, source: Source) -> None:
    """Raise what any other answer than 200 means."""
    if response.status_code == httpx.codes.OK:
        return
    if response.status_code == httpx.codes.REQUEST_TIMEOUT and source.was_slow:
        raise slow_storage()
    body = await read_body(response, MOST_PROBLEM_BYTES)
    raise refusal(response.status_code, response.headers.get("Retry-After", ""), body)


def problem_error(problem: dict[str, Any], code: str) -> dict[str, Any]:
    """What a row says of a problem document, or of the `problem` in a frame."""
    said = {name: problem.get(name) for name in ("detail", "key", "params")}
    return {
        "code": problem.get("code") if isinstance(problem.get("code"), str) else code,
        "message": str(said["detail"] or ""),
        "key": said["key"] if isinstance(said["key"], str) else None,
        "params": said["params"] if isinstance(said["params"], dict) else {},
    }


@asynccontextmanager
async def gateway_client() -> AsyncIterator[BatchGateway]:
    """The worker's client of the gateway, as the settings say: `await job.use(gateway_client)`."""
    gateway = BatchGateway(load(BatchSettings))
    try:
        yield gateway
    finally:
        await gateway.close()
