"""Converts one document: the whole way from a file to JSON or XML, for the gateway and the command line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import pypdfium2

from waybill_documents import hybrid
from waybill_documents.candidates import Candidates
from waybill_documents.check_explanations import MISSING
from waybill_documents.checks import CheckResult, check
from waybill_documents.computed_values import compute
from waybill_documents.confidence import judge
from waybill_documents.essential_values import disproved, essential
from waybill_documents.extraction import Extraction, PageSize, extract
from waybill_documents.faults import DocumentRejected, FaultCode, Finding, MappingFault
from waybill_documents.geometry import Page
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping_choice import ChosenMapping, choose, choose_for_invoice
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.embedded_files import embedded_files
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.plain_document import PlainDocument, PlainPage, PlainTable
from waybill_documents.printed import compare_with_pages
from waybill_documents.provenance import carries_of, data_of, looked_of, pages_of, provenance_of
from waybill_documents.search_areas import Looked
from waybill_documents.stages import Clock, Stages
from waybill_documents.tables.table_finder import guess_tables
from waybill_documents.text_lines import Lines, lines_of
from waybill_documents.values import Extracted
from waybill_documents.xml_output import extracted_from_json, read_json, render

Kind = Literal["pdf", "docx", "xlsx", "text", "json", "xml"]
"""What a document is, by its content."""

Wants = Literal["json", "xml", "conversion"]
"""Plain JSON, the XML alone, or everything in one answer."""

MEDIA_TYPES: dict[Wants, str] = {
    "json": "application/json",
    "xml": "application/xml",
    "conversion": "application/vnd.waybill.conversion+json",
}

_LIMITS = PdfLimits()


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


@dataclass(slots=True)
class Reading:
    """A document that was read by a mapping: its values, its checks and its findings."""

    loaded: LoadedMapping
    source: dict[str, Any]
    extracted: Extracted
    checks: list[CheckResult]
    findings: list[Finding]
    """What makes the document fail, such as a missing required value or a required check that does not hold."""
    embedded: hybrid.EmbeddedInvoice | None = None
    looked: Looked = field(default_factory=dict)
    """For each value that was not found, where it was looked for."""
    dropped: tuple[Finding, ...] = ()
    """What the XML lacks of an e-invoice; known when it has been written."""
    recognition: dict[str, Any] | None = None
    """Why this mapping was chosen; None if it was named."""

    def to_json(self) -> dict[str, Any]:
        """The record: everything about the document, for an answer or for a person who investigates a failure."""
        mapping = self.loaded.mapping
        chosen = {"recognition": self.recognition} if self.recognition is not None else {}
        return {
            "mapping": {"name": mapping.name, "title": mapping.title, "sha256": self.loaded.sha256},
            **chosen,
            "source": self.source,
            "data": data_of(self.extracted),
            "provenance": provenance_of(self.extracted),
            "checks": [result.to_json() for result in self.checks],
            "findings": [finding.to_json() for finding in self.findings],
            "carries": carries_of(self.extracted),
            "looked": looked_of(self.looked),
            "review": self._review(),
        }

    def _review(self) -> dict[str, Any]:
        """What decides whether a person has to look first, apart from the threshold that whoever runs us may set."""
        mapping = self.loaded.mapping
        values = essential(mapping)
        return {
            "below": mapping.review_below,
            "essential": values,
            "disproved": disproved(values, self.extracted, self.checks),
        }

    def accept(self) -> None:
        """Raise `DocumentRejected` with the whole record if there are findings."""
        if not self.findings:
            return
        first, *others = self.findings
        says = DocumentMessage("document.first_finding", first=first.says, count=len(others)) if others else first.says
        raise DocumentRejected(first.code, says, tuple(self.findings), partial=self.to_json())

    def xml(self, *, pretty: bool) -> bytes:
        """The XML that the mapping describes."""
        rule = self.loaded.mapping.embedded
        if self.embedded is not None and rule is not None:
            converted = hybrid.convert(
                self.embedded, hybrid.Syntax(rule.output), loss=hybrid.Loss(rule.loss), pretty=pretty
            )
            self.dropped = converted.dropped
            return converted.xml
        return render(self.loaded.mapping, self.extracted.data(), pretty=pretty, schema=self.loaded.schema)


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
    body = _dumped(_plain_office(content, "text", stages))
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
        return _dumped(_plain(source, limits, stages) if kind == "pdf" else _plain_office(source, kind, stages)), None
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
        whole = _plain_office(source, kind, stages) if kept is None else _with_tables(kept, stages).to_json()
    return _answer(reading, wants, pretty, whole, stages), reading.loaded.mapping.name


def read_document(
    source: Path,
    kind: Kind,
    mapping: LoadedMapping | Candidates,
    limits: PdfLimits,
    stages: Stages,
    *,
    keep: list[Page] | None = None,
) -> Reading:
    """Read a document of any kind by a mapping as far as possible. Raises `MappingFault` for one that none can read."""
    if kind == "pdf":
        return read_pdf(source, mapping, limits, stages, keep=keep)
    if isinstance(mapping, Candidates):
        if kind != "xml":
            raise MappingFault(DocumentMessage("recognition.pdf_only"))
        chosen = choose_for_invoice(mapping)
        reading = read_xml(source, chosen.loaded, limits, stages)
        reading.recognition = chosen.recognition
        return reading
    if kind == "xml" and mapping.mapping.embedded is not None:
        return read_xml(source, mapping, limits, stages)
    if kind not in ("xlsx", "text"):
        raise MappingFault(DocumentMessage("mapping.unread_kind"))
    # Imported here for the reason that `_plain_office` gives.
    from waybill_documents.sheets.workbook_reader import read_workbook

    return read_workbook(source, kind, mapping, stages, keep=keep)


def read_pdf(
    source: Path,
    mapping: LoadedMapping | Candidates,
    limits: PdfLimits,
    stages: Stages,
    *,
    keep: list[Page] | None = None,
) -> Reading:
    """Read a PDF by a mapping as far as possible. Problems become findings; a PDF that cannot be read at all raises.

    Pages are not kept in memory unless there is a list to keep them in.
    """
    with opened(source, limits) as document:
        if isinstance(mapping, Candidates):
            return _read_by_choice(document, choose(document, mapping, limits, stages), limits, stages, keep)
        return _read(document, mapping, stages.through("words", pages(document, limits)), None, limits, stages, keep)


def _read_by_choice(
    document: pypdfium2.PdfDocument, choice: ChosenMapping, limits: PdfLimits, stages: Stages, keep: list[Page] | None
) -> Reading:
    reading = _read(document, choice.loaded, choice.pages, choice.embedded, limits, stages, keep)
    reading.recognition = choice.recognition
    return reading


def _read(
    document: pypdfium2.PdfDocument,
    loaded: LoadedMapping,
    unread: Iterable[Page | Lines],
    embedded: hybrid.EmbeddedInvoice | None,
    limits: PdfLimits,
    stages: Stages,
    keep: list[Page] | None,
) -> Reading:
    if loaded.mapping.embedded is not None:
        reading = _read_embedded(document, loaded, embedded, limits, stages, keep)
        reading.source |= _attachments(document, limits)
        return reading
    extraction = extract(_kept(unread, keep), len(document), loaded.mapping, stages)
    attachments = _attachments(document, limits)
    return judged(loaded, extraction, {"kind": "pdf", "pages": pages_of(extraction.pages), **attachments}, stages)


def _attachments(document: pypdfium2.PdfDocument, limits: PdfLimits) -> dict[str, Any]:
    """What the record says about embedded files; nothing if there are none."""
    found = embedded_files(document, limits)
    return {"attachments": [each.to_json() for each in found]} if found else {}


def read_data(source: Path | Traversable, loaded: LoadedMapping, stages: Stages) -> Reading:
    """Read a JSON document that already has the fields and tables of a mapping."""
    if loaded.mapping.embedded is not None:
        raise MappingFault(DocumentMessage("mapping.reads_embedded", mapping=loaded.mapping.name))
    with stages.timed("values"):
        extracted = extracted_from_json(loaded.mapping, read_json(source.read_bytes()))
    return judged(loaded, Extraction(extracted, [], []), {"kind": "json"}, stages)


def read_xml(source: Path, loaded: LoadedMapping, limits: PdfLimits, stages: Stages) -> Reading:
    """Read an e-invoice that is no part of a PDF, by a mapping for embedded ones."""
    size = source.stat().st_size
    if size > limits.attachment_bytes:
        message = DocumentMessage("xml.too_large", bytes=size, most=limits.attachment_bytes)
        raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, message)
    with stages.timed("attachment"):
        invoice = hybrid.parse_invoice("", source.read_bytes())
        hybrid.validate(invoice)
    extracted, results = _values(invoice, stages)
    origin = {"kind": "xml", "syntax": invoice.syntax.value, "profile": invoice.profile.value, **_edition(invoice)}
    return Reading(loaded, origin, extracted, results, list(_failures(results)), invoice)


def judged(loaded: LoadedMapping, extraction: Extraction, source: dict[str, Any], stages: Stages) -> Reading:
    """Adds computed values, checks and confidence to what was read."""
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


def _read_embedded(
    document: pypdfium2.PdfDocument,
    loaded: LoadedMapping,
    embedded: hybrid.EmbeddedInvoice | None,
    limits: PdfLimits,
    stages: Stages,
    keep: list[Page] | None,
) -> Reading:
    with stages.timed("attachment"):
        embedded = embedded or hybrid.required(hybrid.embedded_in(document, limits))
        hybrid.validate(embedded)  # before any value is used, whatever the answer will contain
    extracted, results = _values(embedded, stages)
    printed = _printed(document, limits, stages, keep)
    with stages.timed("printed"):
        results += compare_with_pages(extracted, hybrid.accounts_of(embedded), printed)
    sizes = [PageSize(page.number, page.width, page.height, page.turn) for page in printed]
    source = {
        "kind": "pdf",
        "attachment": embedded.name,
        "profile": embedded.profile.value,
        **_edition(embedded),
        "pages": pages_of(sizes),
    }
    return Reading(loaded, source, extracted, results, list(_failures(results)), embedded)


def _edition(invoice: hybrid.EmbeddedInvoice) -> dict[str, str]:
    return {"edition": "ZUGFeRD 1"} if invoice.from_zugferd_1 is not None else {}


def _values(invoice: hybrid.EmbeddedInvoice, stages: Stages) -> tuple[Extracted, list[CheckResult]]:
    with stages.timed("values"):
        extracted = hybrid.extract(invoice)
    with stages.timed("checks"):
        return extracted, hybrid.check_embedded(invoice, extracted)


def _printed(document: pypdfium2.PdfDocument, limits: PdfLimits, stages: Stages, keep: list[Page] | None) -> list[Page]:
    """The pages of an invoice that is read from its attachment. If they exceed a limit, it is read without them."""
    try:
        printed = list(stages.through("words", pages(document, limits)))
    except DocumentRejected:
        if keep is not None:  # somebody asked for the pages themselves
            raise
        return []
    if keep is not None:
        keep.extend(printed)
    return printed


def _is_told(failure: Finding, known: Collection[str | None]) -> bool:
    """Whether a check failed only because of a missing value that has a finding already."""
    return failure.key == MISSING and failure.path in known


def _failures(results: Iterable[CheckResult]) -> Iterator[Finding]:
    for result in results:
        if result.required and result.passed is False:
            yield from result.findings


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


def _plain(source: Path, limits: PdfLimits, stages: Stages) -> dict[str, Any]:
    with opened(source, limits) as document:
        plain = _with_tables(stages.through("words", pages(document, limits)), stages)
    if not any(page.words for page in plain.pages):
        raise DocumentRejected(FaultCode.NO_TEXT, DocumentMessage("pdf.no_text"))
    return plain.to_json()


def _plain_office(source: Path | bytes, kind: Kind, stages: Stages) -> dict[str, Any]:
    # Imported here, because python-docx takes a third of a second, and most processes never see a Word document.
    from waybill_documents import office

    readers = {"docx": office.read_word, "xlsx": office.read_excel}
    with stages.timed("office"):
        if isinstance(source, bytes):
            return office.read_text(source).to_json()
        return readers.get(kind, office.read_text)(source).to_json()


def _with_tables(read: Iterable[Page], stages: Stages) -> PlainDocument:
    """The document without a mapping: text, words, and the tables that can be found by layout alone."""
    plain: list[PlainPage] = []
    tables: list[PlainTable] = []
    for page in read:
        with stages.timed("lines"):
            text = "\n".join(line.text for line in lines_of(page))
        plain.append(PlainPage.of(page, text))
        with stages.timed("tables"):
            tables += [PlainTable(page.number, table.rows, table.box) for table in guess_tables(page)]
    return PlainDocument("pdf", plain, tables)


def _kept(read: Iterable[Page | Lines], keep: list[Page] | None) -> Iterator[Page | Lines]:
    for page in read:
        if keep is not None:
            keep.append(page.page if isinstance(page, Lines) else page)
        yield page


def _dumped(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
