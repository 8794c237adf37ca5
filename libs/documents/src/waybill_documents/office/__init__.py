"""Word, Excel and plain text to the one plain shape; PDFs have a folder of their own.

Everything here reads what strangers send. Whatever is wrong with a file ends as a `DocumentFault` with a sentence for
its sender, within bounds of memory that are checked before the memory is spent.
"""

from __future__ import annotations

from pathlib import Path

from waybill_documents.office.detection import Detected, detect, refuse
from waybill_documents.office.excel import read_excel
from waybill_documents.office.limits import OfficeLimits
from waybill_documents.office.text import read_text
from waybill_documents.office.word import read_word
from waybill_documents.plain import Plain

__all__ = ["Detected", "OfficeLimits", "detect", "read", "read_excel", "read_text", "read_word", "refuse"]

_READERS = {"docx": read_word, "xlsx": read_excel, "text": read_text}


def read(path: Path, limits: OfficeLimits | None = None) -> Plain:
    """Read any Office or text file by what it is; a PDF is not one."""
    kind = detect(path)
    if kind is None or kind not in _READERS:
        raise refuse(kind)
    return _READERS[kind](path, limits or OfficeLimits())
