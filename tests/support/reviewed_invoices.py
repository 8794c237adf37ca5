"""Invoices that were really read, so that there is something to review: converted here, without a gateway."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import wrong_subtotal
from support.serving import Converter
from waybill.errors import Code, Failure
from waybill_convert.kinds import PROVENANCE
from waybill_convert.reviser import Corrector
from waybill_convert.revision_models import Json, Revised, Typed
from waybill_documents.conversion import convert
from waybill_documents.faults import DocumentFault
from waybill_documents.mapping.loader import LoadedMapping, shipped
from waybill_engine import Lease
from waybill_engine.artefacts import artefact_key, publish

PATIENCE = 60.0
RIGHT, WRONG = "6.608.687,80", "6609687.80"
"""The subtotal of the broken invoice as it should be, and as its record has it."""


def mapping() -> LoadedMapping:
    found = shipped("pt_simon_invoice_v1")
    assert found is not None
    return found


@dataclass(frozen=True)
class Read:
    """A document and what was made of it."""

    pdf: bytes
    record: bytes
    xml: bytes | None
    """None if it was refused."""

    @property
    def data(self) -> Any:
        return json.loads(self.record)["data"]


@cache
def good() -> Read:
    """An invoice without a fault, of three lines."""
    return read(print_invoice(make_invoice(1, 3), REFERENCE))


@cache
def broken() -> Read:
    """One whose subtotal is not the sum of its three lines."""
    return read(print_invoice(wrong_subtotal(make_invoice(5, 3)), REFERENCE))


def read(pdf: bytes) -> Read:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(pdf)
        try:
            answer = convert(
                Path(file.name), "pdf", mapping=mapping(), wants="conversion", clock=time.monotonic, pretty=True
            )
        except DocumentFault as fault:
            return Read(pdf, json.dumps(fault.partial).encode(), None)
    made = json.loads(answer.body)
    xml = made.pop("xml").encode()
    return Read(pdf, json.dumps(made).encode(), xml)


async def end(converter: Converter, document: Read) -> Lease:
    """End the only waiting conversion as a worker does that got this from the gateway."""
    (lease,) = await converter.take()
    if document.xml is not None:
        await converter.finish(lease, document.xml, document.record)
        return lease
    stored = await converter.storage.put(artefact_key(lease.id, lease.token, PROVENANCE), document.record)
    await publish(converter.connection, lease.id, lease.token, PROVENANCE, stored, "application/json")
    findings = json.loads(document.record)["findings"]
    failure = Failure(Code.GW_4XX, findings[0]["message"], 422, False, True, None, {"findings": findings})
    await converter.fail(lease, failure)
    return lease


class Together(Corrector):
    """Goes on when as many corrections are under way as were announced: then nobody has saved and all have looked."""

    def __init__(self, parties: int) -> None:
        super().__init__()
        self.barrier = threading.Barrier(parties)

    def revise(self, record: Json, typed: Sequence[Typed]) -> Revised:
        self.barrier.wait(PATIENCE)
        return super().revise(record, typed)
