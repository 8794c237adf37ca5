"""Detects the format of a file by its content, never by its name.

Detection looks only at the beginning; the file may still turn out to be damaged.
"""

from __future__ import annotations

import mmap
import re
import zipfile
from itertools import islice
from pathlib import Path
from typing import Literal

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.office.text_encoding import decode

Detected = Literal["pdf", "docx", "xlsx", "text", "protected", "doc", "xls", "xlsb", "ods", "odt", "pptx"]
"""The four formats that we read, and the ones we refuse with a specific message."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS: tuple[tuple[str, Detected], ...] = (
    ("EncryptedPackage", "protected"),
    ("WordDocument", "doc"),
    ("Workbook", "xls"),
    ("Book", "xls"),
)
_MAIN_PARTS: dict[str, Detected] = {
    "word/document.xml": "docx",
    "xl/workbook.xml": "xlsx",
    "xl/workbook.bin": "xlsb",
    "ppt/presentation.xml": "pptx",
}
_OPEN_DOCUMENT: tuple[tuple[bytes, Detected], ...] = (
    (b"application/vnd.oasis.opendocument.spreadsheet", "ods"),
    (b"application/vnd.oasis.opendocument.text", "odt"),
)
_HEAD = 64 * 1024
_MOST_PARTS = 10_000

_UNREAD: dict[str, DocumentMessage] = {
    "doc": DocumentMessage("office.old_word"),
    "xls": DocumentMessage("office.old_excel"),
    "xlsb": DocumentMessage("office.binary_workbook"),
    "ods": DocumentMessage("office.open_spreadsheet"),
    "odt": DocumentMessage("office.open_text"),
    "pptx": DocumentMessage("office.presentation"),
}


def detect(path: Path) -> Detected | None:
    """The format of the file; None when it is empty or unknown."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if not head:
            return None
        if head.startswith(b"PK\x03\x04"):
            return _inside_zip(path, head)
        if head.startswith(_OLE):
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _inside_ole(content)
    # PDF readers accept up to a kilobyte before the header, and mail programs put text there.
    if (at := head.find(b"%PDF-", 0, 1024)) >= 0 and not head[:at].strip(b"\xef\xbb\xbf \t\r\n\0"):
        return "pdf"
    if at >= 0 and b"startxref" in _tail(path):
        return "pdf"
    return "text" if decode(head, whole=len(head) < _HEAD) is not None else None


def refuse(kind: Detected | None) -> DocumentRejected:
    """The fault for a file of this format, for the person who sent it."""
    if kind == "protected":
        return DocumentRejected(FaultCode.ENCRYPTED, DocumentMessage("office.encrypted"))
    return DocumentRejected(FaultCode.UNREADABLE, _UNREAD.get(kind or "") or DocumentMessage("office.unknown_format"))


def _inside_zip(path: Path, head: bytes) -> Detected | None:
    for media_type, kind in _OPEN_DOCUMENT:
        if media_type in head[:200]:  # the format requires it there, uncompressed
            return kind
    names = zip_names(path, _MOST_PARTS)
    if names is None:
        # The file is truncated or damaged. Local headers still show what it was, for a better message.
        return "docx" if b"word/" in head else "xlsx" if b"xl/" in head else _cut_office(head)
    return next((kind for part, kind in _MAIN_PARTS.items() if part in names), None)


def _cut_office(head: bytes) -> Detected | None:
    """Recognise a truncated file by its first part, which Word and Excel both have."""
    return "docx" if head[30:49] == b"[Content_Types].xml" else None


def zip_names(path: Path, most: int) -> set[str] | None:
    """The names in a ZIP; None if its directory cannot be read or has more than `most` entries."""
    if not 0 < directory_entries(path, most) <= most:
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, OverflowError):
        return None


def directory_entries(path: Path, most: int) -> int:
    """An upper bound for the entries of a ZIP, counted up to `most` + 1 without trusting the directory.

    `zipfile` makes an object for each entry before it reports their number.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return sum(1 for _ in islice(re.finditer(b"PK\x01\x02", content), most + 1))


def _inside_ole(content: mmap.mmap) -> Detected | None:
    """The format by the names of the streams. Directory entries have 128 bytes, in sectors of 512 or 4,096."""
    for name, kind in _OLE_STREAMS:
        wanted = name.encode("utf-16-le") + b"\0\0"
        at = content.find(wanted)
        while at >= 0:
            if at % 128 == 0:
                return kind
            at = content.find(wanted, at + 1)
    return None


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - 1024))
        return file.read()
