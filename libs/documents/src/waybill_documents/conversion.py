"""Converts one document: the whole way from a file to JSON or XML, for the gateway and the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from waybill_documents.candidates import Candidates
from waybill_documents.document_reader import Kind, read_data, read_document
from waybill_documents.faults import DocumentRejected, MappingFault
from waybill_documents.geometry import Page
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.plain_reader import plain_office, plain_pdf, with_tables
from waybill_documents.reading import Reading
from waybill_documents.stages import Clock, Stages

Wants = Literal["json", "xml", "conversion"]
"""Plain JSON, the XML alone, or everything in one answer."""

MEDIA_TYPES: dict[Wants, str] = {
    "json": "application/json",
    "xml": "application/xml",
    "conversion": "application/vnd.waybill.conversion+json",
}

_LIMITS = PdfLimits()
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a conversion."""

    body: bytes
    media_type: str
    stages: dict[str, float]
    """Milliseconds by stage, in the order in which the stages first ran."""
    extents: dict[str, tuple[float, float]]
    """When each stage first began and last ended, by the clock that the caller provided."""
    mapping: str | None = None
    """The mapping that was used: the one that was named, or the one that was chosen."""


def convert(
    source: Path,
    kind: Kind,
    *,
    mapping: LoadedMapping | Candidates | None,
    wants: Wants,
    clock: Clock,
    pretty: bool = False,
    limits: PdfLimits = _LIMITS,
) -> Answer:
    """Convert a document, by a mapping or by the one of several that is for such documents.

    Raises `DocumentRejected` or `MappingFault`, depending on which of the two is wrong.
    """
    stages = Stages(clock)
    try:
        body, used = _converted(source, kind, mapping, wants, pretty, limits, stages)
    except DocumentRejected as fault:
        fault.stages, fault.extents = stages.milliseconds, stages.extents
        raise
    return Answer(body, MEDIA_TYPES[wants], stages.milliseconds, stages.extents, used)


def convert_text(content: bytes, clock: Clock) -> Answer:
    """The JSON of a text that is in memory: what `convert` makes of its file without a mapping."""
    stages = Stages(clock)
    body = _dumped(plain_office(content, "text", stages))
    return Answer(body, MEDIA_TYPES["json"], stages.milliseconds, stages.extents)


def _converted(
    source: Path,
    kind: Kind,
    mapping: LoadedMapping | Candidates | None,
    wants: Wants,
    pretty: bool,
    limits: PdfLimits,
    stages: Stages,
) -> tuple[bytes, str | None]:
    """The answer, and the mapping that was used."""
    if mapping is None:
        if kind == "json" or wants != "json":
            raise MappingFault(DocumentMessage("mapping.needed"))
        return _dumped(plain_pdf(source, limits, stages) if kind == "pdf" else plain_office(source, kind, stages)), None
    if kind == "json":
        if wants != "xml":
            raise MappingFault(DocumentMessage("mapping.json_only_to_xml"))
        if isinstance(mapping, Candidates):
            raise MappingFault(DocumentMessage("recognition.pdf_only"))
        reading = read_data(source, mapping, stages)
        reading.accept()
        return _xml(reading, pretty, stages), mapping.mapping.name
    kept: list[Page] | None = [] if wants == "json" and kind == "pdf" else None
    reading = read_document(source, kind, mapping, limits, stages, keep=kept)
    reading.accept()
    whole = None
    if wants == "json":
        whole = plain_office(source, kind, stages) if kept is None else with_tables(kept, stages).to_json()
    return _answer(reading, wants, pretty, whole, stages), reading.loaded.mapping.name


def _answer(reading: Reading, wants: Wants, pretty: bool, whole: dict[str, Any] | None, stages: Stages) -> bytes:
    if wants == "xml":
        return _xml(reading, pretty, stages)
    answer = reading.to_json()
    if wants == "conversion":
        answer["xml"] = _xml(reading, pretty, stages).decode()
        if reading.embedded is not None:
            answer["dropped"] = [finding.to_json() for finding in reading.dropped]
    elif whole is not None:
        answer["pages"], answer["tables"] = whole["pages"], whole["tables"]
    answer["stages"] = {stage: round(spent, 2) for stage, spent in stages.milliseconds.items()}
    return _dumped(answer)


def _xml(reading: Reading, pretty: bool, stages: Stages) -> bytes:
    with stages.timed("xml"):
        return reading.xml(pretty=pretty)


def _dumped(answer: dict[str, Any]) -> bytes:
    return _as_json(answer).encode()
