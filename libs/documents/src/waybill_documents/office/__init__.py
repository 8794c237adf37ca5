"""Reads Word, Excel and plain text files as plain documents. PDFs have their own folder.

The files are untrusted. Whatever is wrong with one becomes a `DocumentRejected` with a message for its sender. Limits
are checked before memory is spent.
"""

from __future__ import annotations

from pathlib import Path

from waybill_documents.office.detection import Detected, detect, refuse
from waybill_documents.office.excel import read_excel
from waybill_documents.office.office_limits import OfficeLimits
from waybill_documents.office.text import read_text
from waybill_documents.office.word import read_word
from waybill_documents.plain_document import PlainDocument

__all__ = ["Detected", "OfficeLimits", "detect", "read", "read_excel", "read_text", "read_word", "refuse"]

_READERS = {"docx": read_word, "xlsx": read_excel, "text": read_text}


def read(path: Path, limits: OfficeLimits | None = None) -> PlainDocument:
    """Read any Office or text file by its content. PDFs are refused."""
    kind = detect(path)
    if kind is None or kind not in _READERS:
        raise refuse(kind)
    return _READERS[kind](path, limits or OfficeLimits())
