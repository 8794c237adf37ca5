"""Reads a document without a mapping: its text, words and tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from waybill_documents.document_reader import Kind
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Page
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.pdf.word_reader import pages
from waybill_documents.plain_document import PlainDocument, PlainPage, PlainTable
from waybill_documents.stages import Stages
from waybill_documents.tables.table_finder import guess_tables
from waybill_documents.text_lines import lines_of


def plain_pdf(source: Path, limits: PdfLimits, stages: Stages) -> dict[str, Any]:
    """The document that is in a PDF."""
    with opened(source, limits) as document:
        plain = with_tables(stages.through("words", pages(document, limits)), stages)
    if not any(page.words for page in plain.pages):
        raise DocumentRejected(FaultCode.NO_TEXT, DocumentMessage("pdf.no_text"))
    return plain.to_json()


def plain_office(source: Path | bytes, kind: Kind, stages: Stages) -> dict[str, Any]:
    """The document that is in a Word, Excel or text file."""
    # Imported here, because python-docx takes a third of a second, and most processes never see a Word document.
    from waybill_documents import office

    readers = {"docx": office.read_word, "xlsx": office.read_excel}
    with stages.timed("office"):
        if isinstance(source, bytes):
            return office.read_text(source).to_json()
        return readers.get(kind, office.read_text)(source).to_json()


def with_tables(read: Iterable[Page], stages: Stages) -> PlainDocument:
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
