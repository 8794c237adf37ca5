"""Reads a document of any kind by a mapping, as far as possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import pypdfium2

from waybill_documents import hybrid
from waybill_documents.candidates import Candidates
from waybill_documents.checks import CheckResult
from waybill_documents.extraction import Extraction, PageSize, extract
from waybill_documents.faults import DocumentRejected, FaultCode, MappingFault
from waybill_documents.geometry import Page
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping_choice import ChosenMapping, choose, choose_for_invoice
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.embedded_files import embedded_files
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.printed import compare_with_pages
from waybill_documents.provenance import pages_of
from waybill_documents.reading import Reading, failures, judged
from waybill_documents.stages import Stages
from waybill_documents.text_lines import Lines
from waybill_documents.values import Extracted
from waybill_documents.xml_output import extracted_from_json, read_json

Kind = Literal["pdf", "docx", "xlsx", "text", "json", "xml"]
"""What a document is, by its content."""


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
    # Imported here for the reason that `plain_office` gives.
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
    return Reading(loaded, origin, extracted, results, list(failures(results)), invoice)


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
    return Reading(loaded, source, extracted, results, list(failures(results)), embedded)


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


def _kept(read: Iterable[Page | Lines], keep: list[Page] | None) -> Iterator[Page | Lines]:
    for page in read:
        if keep is not None:
            keep.append(page.page if isinstance(page, Lines) else page)
        yield page
