"""Plain text files: lines, a page for every form feed, and a table if the file is CSV."""

from __future__ import annotations

import re
from pathlib import Path

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.office.delimited import rows_of
from waybill_documents.office.detection import detect, refuse
from waybill_documents.office.office_limits import Budget, OfficeLimits
from waybill_documents.office.text_encoding import decode
from waybill_documents.plain_document import PlainDocument, PlainPage, PlainTable

_LINE_ENDS = re.compile("\r\n?|[\x0b\x85\u2028\u2029]")
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
"""Colours and cursor movements of a terminal or an old printer."""
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_MOST_PAGES = 10_000


def read_text(source: Path | bytes, limits: OfficeLimits | None = None) -> PlainDocument:
    """Read a text in any of the usual encodings, page by page, with its tables."""
    limits = limits or OfficeLimits()
    pages = read_whole(source, limits).split("\f")
    if len(pages) > _MOST_PAGES:
        raise DocumentRejected(
            FaultCode.TOO_MANY_PAGES, DocumentMessage("text_file.too_many_pages", pages=len(pages), most=_MOST_PAGES)
        )
    return PlainDocument(
        kind="text",
        pages=tuple(PlainPage(number=number, text=page.strip("\n")) for number, page in enumerate(pages, start=1)),
        tables=tuple(
            PlainTable(page=number, rows=rows)
            for number, page in enumerate(pages, start=1)
            if (rows := rows_of(page, limits)) is not None
        ),
    )


def read_whole(source: Path | bytes, limits: OfficeLimits) -> str:
    """The text of a file in any of the usual encodings, with plain line ends and without control characters."""
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    if size > limits.text_bytes:
        raise DocumentRejected(
            FaultCode.TOO_MUCH_TEXT, DocumentMessage("text_file.too_large", megabytes=limits.text_bytes // 1_000_000)
        )
    data = source if isinstance(source, bytes) else source.read_bytes()
    if not data:
        raise DocumentRejected(FaultCode.NO_TEXT, DocumentMessage("text_file.empty"))
    text = decode(data)
    if text is None:
        kind = None if isinstance(source, bytes) else detect(source)
        raise refuse(None if kind == "text" else kind)
    text = clean(text)
    Budget(limits).spend(len(text))
    if not text.strip():
        raise DocumentRejected(FaultCode.NO_TEXT, DocumentMessage("text_file.blank"))
    return text


def clean(text: str) -> str:
    """Normalise line ends, and remove all control characters except tab, line feed and form feed."""
    return _CONTROL.sub("", _TERMINAL.sub("", _LINE_ENDS.sub("\n", text))).removesuffix("\f")
