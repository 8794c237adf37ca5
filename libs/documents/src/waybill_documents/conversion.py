"""One document in, one answer out: the whole way from a file to JSON or XML, for the gateway and the command line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import pypdfium2

from waybill_documents import hybrid
from waybill_documents.checks import CheckResult, check
from waybill_documents.computed_values import compute
from waybill_documents.confidence import judge
from waybill_documents.extraction import Extraction, extract
from waybill_documents.faults import NO_TEXT, DocumentFault, FaultCode, Finding, MappingFault
from waybill_documents.limits import Limits
from waybill_documents.lines import lines_of
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.words import pages
from waybill_documents.plain import Plain, PlainPage, PlainTable
from waybill_documents.provenance import carries_of, data_of, looked_of, pages_of, provenance_of
from waybill_documents.search_areas import Looked
from waybill_documents.stages import Clock, Stages
from waybill_documents.tables.table_finder import guess_tables
from waybill_documents.values import Extracted
from waybill_documents.words import Page
from waybill_documents.xml_output import extracted_from_json, read_json, render

Wants = Literal["json", "xml", "conversion"]
"""Plain JSON, the XML alone, or everything in one answer."""

MEDIA_TYPES: dict[Wants, str] = {
    "json": "application/json",
    "xml": "application/xml",
    "conversion": "application/vnd.waybill.conversion+json",
}

_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Answer:
    """What was made of a document."""

    body: bytes
    media_type: str
    stages: dict[str, float]
    """Milliseconds by stage, in the order in which they first ran."""


@dataclass(slots=True)
class Reading:
    """A document that was read by a mapping: what is known of it, and what is wrong with it."""

    loaded: LoadedMapping
    source: dict[str, Any]
    extracted: Extracted
    checks: list[CheckResult]
    findings: list[Finding]
    """What makes the document fail: a required value that is missing, a required check that does not hold."""
    embedded: hybrid.EmbeddedInvoice | None = None
    looked: Looked = field(default_factory=dict)
    """Where each value was looked for that was not found."""

    def to_json(self) -> dict[str, Any]:
        """All of it, for an answer or for a person who looks into a failure."""
        mapping = self.loaded.mapping
        return {
            "mapping": {"name": mapping.name, "title": mapping.title, "sha256": self.loaded.sha256},
            "source": self.source,
            "data": data_of(self.extracted),
            "provenance": provenance_of(self.extracted),
            "checks": [result.to_json() for result in self.checks],
            "findings": [finding.to_json() for finding in self.findings],
            "carries": carries_of(self.extracted),
            "looked": looked_of(self.looked),
        }

    def accept(self) -> None:
        """Raise DocumentFault, with all that was found, if anything is wrong."""
        if not self.findings:
            return
        first, *others = self.findings
        more = f" (and {len(others)} more)" if others else ""
        raise DocumentFault(first.code, f"{first.message}{more}", tuple(self.findings), partial=self.to_json())

    def xml(self, *, pretty: bool) -> bytes:
        """The XML that the mapping describes."""
        rule = self.loaded.mapping.embedded
        if self.embedded is not None and rule is not None:
            return hybrid.to_cii(self.embedded) if rule.output == "cii" else hybrid.to_ubl(self.embedded, pretty=pretty)
        return render(self.loaded.mapping, self.extracted.data(), pretty=pretty, schema=self.loaded.schema)


def convert(
    source: Path,
    kind: Literal["pdf", "json"],
    *,
    mapping: LoadedMapping | None,
    wants: Wants,
    clock: Clock,
    pretty: bool = False,
    limits: Limits = _LIMITS,
) -> Answer:
    """Convert a document. Raises `DocumentFault` if it is at fault, `MappingFault` if the mapping cannot do it."""
    stages = Stages(clock)
    try:
        body = _converted(source, kind, mapping, wants, pretty, limits, stages)
    except DocumentFault as fault:
        fault.stages = stages.milliseconds
        raise
    return Answer(body, MEDIA_TYPES[wants], stages.milliseconds)


def _converted(
    source: Path,
    kind: Literal["pdf", "json"],
    mapping: LoadedMapping | None,
    wants: Wants,
    pretty: bool,
    limits: Limits,
    stages: Stages,
) -> bytes:
    if mapping is None:
        if kind != "pdf" or wants != "json":
            raise MappingFault("only a PDF can be read without a mapping, and only to JSON")
        return _dumped(_plain(source, limits, stages))
    if kind == "json":
        if wants != "xml":
            raise MappingFault("a JSON document can only be rendered as XML")
        reading = read_data(source, mapping, stages)
        reading.accept()
        return _xml(reading, pretty, stages)
    return _read_and_answer(source, mapping, wants, pretty, limits, stages)


def read_pdf(
    source: Path, loaded: LoadedMapping, limits: Limits, stages: Stages, *, keep: list[Page] | None = None
) -> Reading:
    """Read a PDF by a mapping as far as it goes: what is wrong is in the findings. What cannot be read at all raises.

    Pages are forgotten as they are read, unless there is a list to keep them in.
    """
    with opened(source, limits) as document:
        if loaded.mapping.embedded is not None:
            reading = _read_embedded(document, loaded, limits, stages)
            if keep is not None:
                keep.extend(stages.through("words", pages(document, limits)))
            return reading
        read = _kept(stages.through("words", pages(document, limits)), keep)
        extraction = extract(read, len(document), loaded.mapping, stages)
    return judged(loaded, extraction, {"kind": "pdf", "pages": pages_of(extraction.pages)}, stages)


def read_data(source: Path | Traversable, loaded: LoadedMapping, stages: Stages) -> Reading:
    """Read a JSON document that already has the fields and tables of a mapping."""
    if loaded.mapping.embedded is not None:
        raise MappingFault(f"'{loaded.mapping.name}' reads the invoice embedded in a PDF, not a JSON document")
    with stages.timed("values"):
        extracted = extracted_from_json(loaded.mapping, read_json(source.read_bytes()))
    return judged(loaded, Extraction(extracted, [], []), {"kind": "json"}, stages)


def judged(loaded: LoadedMapping, extraction: Extraction, source: dict[str, Any], stages: Stages) -> Reading:
    """What was read, with the computed values, the checks and the confidence that follow from it."""
    extracted = extraction.extracted
    with stages.timed("computed"):
        findings = [*extraction.findings, *compute(loaded.mapping, extracted)]
    with stages.timed("checks"):
        results = check(loaded.mapping, extracted, extracted.carries)
    with stages.timed("confidence"):
        judge(loaded.mapping, extracted, results)
    known = {finding.path for finding in findings}
    news = [failure for failure in _failures(results) if not _is_told(failure, known)]
    return Reading(loaded, source, extracted, results, [*findings, *news], looked=extraction.looked)


def _read_embedded(document: pypdfium2.PdfDocument, loaded: LoadedMapping, limits: Limits, stages: Stages) -> Reading:
    with stages.timed("attachment"):
        embedded = hybrid.required(hybrid.embedded_in(document, limits))
        hybrid.validate(embedded)  # before any value is believed, whatever the answer is made of
    with stages.timed("values"):
        extracted = hybrid.extract(embedded)
    with stages.timed("checks"):
        results = hybrid.check_embedded(embedded, extracted)
    source = {"kind": "pdf", "attachment": embedded.name, "profile": embedded.profile.value}
    return Reading(loaded, source, extracted, results, list(_failures(results)), embedded)


def _is_told(failure: Finding, known: Collection[str | None]) -> bool:
    """Whether a check only failed for a value whose absence is a finding already."""
    return failure.params.get("kind") == "missing" and failure.path in known


def _failures(results: Iterable[CheckResult]) -> Iterator[Finding]:
    for result in results:
        if result.required and result.passed is False:
            yield from result.findings


def _read_and_answer(
    source: Path, loaded: LoadedMapping, wants: Wants, pretty: bool, limits: Limits, stages: Stages
) -> bytes:
    kept: list[Page] | None = [] if wants == "json" else None
    reading = read_pdf(source, loaded, limits, stages, keep=kept)
    reading.accept()
    if wants == "xml":
        return _xml(reading, pretty, stages)
    answer = reading.to_json()
    if wants == "conversion":
        answer["xml"] = _xml(reading, pretty, stages).decode()
    elif kept:
        whole = _with_tables(kept, stages).to_json()
        answer["pages"], answer["tables"] = whole["pages"], whole["tables"]
    answer["stages"] = {stage: round(spent, 2) for stage, spent in stages.milliseconds.items()}
    return _dumped(answer)


def _xml(reading: Reading, pretty: bool, stages: Stages) -> bytes:
    with stages.timed("xml"):
        return reading.xml(pretty=pretty)


def _plain(source: Path, limits: Limits, stages: Stages) -> dict[str, Any]:
    with opened(source, limits) as document:
        plain = _with_tables(stages.through("words", pages(document, limits)), stages)
    if not any(page.words for page in plain.pages):
        raise DocumentFault(FaultCode.NO_TEXT, NO_TEXT)
    return plain.to_json()


def _with_tables(read: Iterable[Page], stages: Stages) -> Plain:
    """The document as it is: text, words and the tables one can see without knowing what it is."""
    plain: list[PlainPage] = []
    tables: list[PlainTable] = []
    for page in read:
        with stages.timed("lines"):
            text = "\n".join(line.text for line in lines_of(page))
        plain.append(PlainPage.of(page, text))
        with stages.timed("tables"):
            tables += [PlainTable(page.number, table.rows, table.box) for table in guess_tables(page)]
    return Plain("pdf", plain, tables)


def _kept(read: Iterable[Page], keep: list[Page] | None) -> Iterator[Page]:
    for page in read:
        if keep is not None:
            keep.append(page)
        yield page


def _dumped(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
