"""The client of the gateway: it sends one document, returns one conversion, and names every failure.

The document is streamed from storage straight into the request, so that a worker's memory does not grow with its
documents. One client serves all jobs of a worker and keeps its connections open.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

from waybill.config import load
from waybill.gateway_client.broken_calls import named_failures, slow_storage
from waybill.gateway_client.call_metrics import measured
from waybill.gateway_client.connections import GatewayConnections, read_body
from waybill.gateway_client.source import Source
from waybill.http.streamed_form import StreamedForm
from waybill.telemetry.spans import Span
from waybill_convert.clients import answers
from waybill_convert.clients.answers import ConvertedDocument
from waybill_convert.doubts import NEVER, KnownThresholds
from waybill_convert.settings import ConvertSettings
from waybill_documents.mapping_files import MappingFiles

CONVERSION = "application/vnd.waybill.conversion+json"
MOST_ANSWER_BYTES = 256 * 1024 * 1024
"""An invoice of 2,000 lines with its provenance is about 5 MB; an answer larger than this is not a conversion."""
MOST_PROBLEM_BYTES = 8 * 1024 * 1024
MOST_AT_HAND = 256 * 1024
"""An answer up to this size is decoded in a few milliseconds, in this process. A larger one would stall the loop that
renews the lease, even from a thread, because decoding JSON holds the interpreter's lock."""

Apart = Callable[..., Awaitable[Any]]
"""Runs a function in another process: `JobContext.run_blocking`."""


class Gateway:
    """A client of the gateway, shared by all jobs of a worker."""

    def __init__(self, url: str, timeout: float, secrets: Sequence[bytes] = ()) -> None:
        self._timeout = timeout
        self._connections = GatewayConnections(url, timeout, secrets)

    async def close(self) -> None:
        await self._connections.close()

    @measured
    async def convert(
        self,
        source: Source,
        *,
        mapping: str,
        job_id: str,
        apart: Apart,
        files: MappingFiles | None = None,
        candidates: str | None = None,
        loss: str | None = None,
        thresholds: KnownThresholds = NEVER,
    ) -> ConvertedDocument:
        """Have a document converted. Raises an error of the taxonomy for whatever goes wrong.

        `files` are those of a mapping that the gateway does not have, or not in the version that is meant. `candidates`
        is the whole form field, with the mappings that the document may choose from. `loss` is what may be lost of an
        e-invoice, if the mapping shall not decide.
        """
        fields = {"mapping": mapping, "pretty": "1", "job_id": job_id, **({"loss": loss} if loss is not None else {})}
        if files is not None:
            sent = {"name": mapping, "sha256": files.sha256, "document": files.document, "schemas": dict(files.schemas)}
            fields["mappings"] = json.dumps([sent])
        elif candidates is not None:
            fields["mappings"] = candidates
        with self._connections.span("/process") as span:
            return await self._convert(source, fields, apart, thresholds, span)

    async def _convert(
        self, source: Source, fields: dict[str, str], apart: Apart, thresholds: KnownThresholds, span: Span
    ) -> ConvertedDocument:
        form, job_id = StreamedForm(fields, source.size), fields["job_id"]
        headers = {"Accept": CONVERSION, "X-Job-Id": job_id, **form.headers}
        with named_failures(source, self._timeout):
            async with (
                asyncio.timeout(self._timeout),  # httpx limits each wait separately, so a trickle would go on for ever
                self._connections.post("/process", content=form.body(source.read()), headers=headers) as response,
            ):
                status, retry_after = response.status_code, response.headers.get("Retry-After", "")
                span.set({"http.response.status_code": status})
                body = await read_body(response, MOST_ANSWER_BYTES if status == httpx.codes.OK else MOST_PROBLEM_BYTES)
        if status == httpx.codes.REQUEST_TIMEOUT and source.was_slow:
            raise slow_storage()
        here = len(body) <= MOST_AT_HAND
        if status == httpx.codes.OK:
            answer = (body, thresholds)
            found: ConvertedDocument = answers.conversion(*answer) if here else await apart(answers.conversion, *answer)
            return found
        said = (status, retry_after, body)
        raise answers.refusal(*said) if here else await apart(answers.refusal, *said)


@asynccontextmanager
async def gateway_client() -> AsyncIterator[Gateway]:
    """The worker's client of the gateway, as the settings say: `await job.use(gateway_client)`."""
    settings = load(ConvertSettings)
    gateway = Gateway(settings.gateway_url, settings.gateway_timeout, settings.gateway_secrets)
    try:
        yield gateway
    finally:
        await gateway.close()
