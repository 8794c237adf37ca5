"""Invoices that were really read, for tests of the review. The test's own process converts them, not a gateway."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.api_server import Converter
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import wrong_subtotal
from support.patience import PATIENCE
from support.records import pt_simon_loaded
from waybill.errors import Code
from waybill.failures import Failure
from waybill.storage import LocalStorage, Storage, Stored
from waybill_convert.doubts import Doubts, KnownThresholds, look
from waybill_convert.kinds import PROVENANCE
from waybill_convert.review_desk import ReviewDesk
from waybill_documents.conversion import convert
from waybill_documents.faults import DocumentRejected
from waybill_engine import ClaimedJob
from waybill_engine.artefacts import artefact_key, publish

RIGHT, WRONG = "6.608.687,80", "6609687.80"
"""The right subtotal of the broken invoice, and the one in its record."""


@dataclass(frozen=True)
class Read:
    """A document with its record and XML."""

    pdf: bytes
    record: bytes
    xml: bytes | None
    """None if the document was refused."""
    doubts: Doubts | None = None

    @property
    def data(self) -> Any:
        return json.loads(self.record)["data"]


@cache
def good() -> Read:
    """An invoice of three lines without a fault."""
    return read(print_invoice(make_invoice(1, 3), REFERENCE))


@cache
def doubtful() -> Read:
    """The good invoice, of which two values are in doubt."""
    record = json.loads(good().record)
    record["provenance"]["fields"]["number"]["confidence"] = 50
    record["provenance"]["tables"]["lines"][1]["name"]["confidence"] = 45
    doubts = look(record, KnownThresholds(60))
    assert doubts is not None
    assert doubts.paths == ["number", "lines[1].name"]
    return Read(good().pdf, json.dumps(record).encode(), good().xml, doubts)


@cache
def broken() -> Read:
    """An invoice whose subtotal is not the sum of its three lines."""
    return read(print_invoice(wrong_subtotal(make_invoice(5, 3)), REFERENCE))


def read(pdf: bytes) -> Read:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(pdf)
        try:
            answer = convert(
                Path(file.name), "pdf", mapping=pt_simon_loaded(), wants="conversion", clock=time.monotonic, pretty=True
            )
        except DocumentRejected as fault:
            return Read(pdf, json.dumps(fault.partial).encode(), None)
    made = json.loads(answer.body)
    xml = made.pop("xml").encode()
    return Read(pdf, json.dumps(made).encode(), xml)


async def end(converter: Converter, document: Read) -> ClaimedJob:
    """End the only queued conversion like a worker that got this document from the gateway."""
    (claimed,) = await converter.take()
    if document.xml is not None:
        await converter.finish(claimed, document.xml, document.record, document.doubts)
        return claimed
    stored = await converter.storage.put(
        artefact_key(claimed.id, claimed.token, claimed.worker_id, PROVENANCE), document.record
    )
    await publish(
        converter.connection, claimed.worker_id, claimed.id, claimed.token, PROVENANCE, stored, "application/json"
    )
    findings = json.loads(document.record)["findings"]
    failure = Failure(Code.GW_4XX, findings[0]["message"], 422, False, True, None, {"findings": findings})
    await converter.fail(claimed, failure)
    return claimed


class Together(LocalStorage):
    """A storage that waits until `parties` corrections are about to be stored: all are computed, and none is saved."""

    def __init__(self, parties: int, folder: Path) -> None:
        super().__init__(folder)
        self.barrier = asyncio.Barrier(parties)

    async def put(self, key: str, data: bytes | AsyncIterable[bytes], *, limit: int | None = None) -> Stored:
        if key.endswith(".xml"):
            async with asyncio.timeout(PATIENCE):
                await self.barrier.wait()
        return await super().put(key, data, limit=limit)


@asynccontextmanager
async def review_desk(storage: Storage) -> AsyncIterator[ReviewDesk]:
    """A desk with side processes of its own, as an API process has."""
    desk = ReviewDesk(storage, processes=2)
    try:
        yield desk
    finally:
        await desk.close()
