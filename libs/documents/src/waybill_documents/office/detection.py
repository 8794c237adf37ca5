"""What a file is, by its content: never by its name, which anybody can choose.

A detected kind is a promise about the first look only; reading may still find the file damaged.
"""

from __future__ import annotations

import mmap
import re
import zipfile
from itertools import islice
from pathlib import Path
from typing import Literal

from waybill_documents.faults import DocumentFault, FaultCode
from waybill_documents.office.text_encoding import decode

Detected = Literal["pdf", "docx", "xlsx", "text", "protected", "doc", "xls", "xlsb", "ods", "odt", "pptx"]
"""The four kinds that are read, and those that get a sentence of their own for not being read."""

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

_UNREAD: dict[str, str] = {
    "doc": "This is a Word document in the format before 2007 (.doc). Open it in Word and save it as .docx.",
    "xls": "This is an Excel workbook in the format before 2007 (.xls). Open it in Excel and save it as .xlsx.",
    "xlsb": "This is an Excel binary workbook (.xlsb). Open it in Excel and save it as .xlsx.",
    "ods": "This is an OpenDocument spreadsheet (.ods). Save it as .xlsx.",
    "odt": "This is an OpenDocument text (.odt). Save it as .docx.",
    "pptx": "This is a presentation. Documents, workbooks and texts are read, presentations are not.",
}


def detect(path: Path) -> Detected | None:
    """The kind of the file, or None when it is empty or nothing we know."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if not head:
            return None
        if head.startswith(b"PK\x03\x04"):
            return _inside_zip(path, head)
        if head.startswith(_OLE):
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _inside_ole(content)
    # Readers accept up to a kilobyte of anything before a PDF, and mailers do put it there.
    if (at := head.find(b"%PDF-", 0, 1024)) >= 0 and not head[:at].strip(b"\xef\xbb\xbf \t\r\n\0"):
        return "pdf"
    if at >= 0 and b"startxref" in _tail(path):
        return "pdf"
    return "text" if decode(head, whole=len(head) < _HEAD) is not None else None


def refuse(kind: Detected | None) -> DocumentFault:
    """Why a file of this kind is not read, for the person who sent it."""
    if kind == "protected":
        return DocumentFault(
            FaultCode.ENCRYPTED, "The document is protected with a password. Save it without one and send it again."
        )
    sentence = _UNREAD.get(kind or "", "The file is neither a PDF nor a Word, Excel or text document.")
    return DocumentFault(FaultCode.UNREADABLE, sentence)


def _inside_zip(path: Path, head: bytes) -> Detected | None:
    for media_type, kind in _OPEN_DOCUMENT:
        if media_type in head[:200]:  # the format demands it there, uncompressed
            return kind
    names = zip_names(path, _MOST_PARTS)
    if names is None:
        # Cut off or damaged. Local headers still tell what it was, so that the fault can be a good one.
        return "docx" if b"word/" in head else "xlsx" if b"xl/" in head else _cut_office(head)
    return next((kind for part, kind in _MAIN_PARTS.items() if part in names), None)


def _cut_office(head: bytes) -> Detected | None:
    """Not even the main part's name is left; Word and Excel both begin with this one."""
    return "docx" if head[30:49] == b"[Content_Types].xml" else None


def zip_names(path: Path, most: int) -> set[str] | None:
    """The names in a ZIP; None when its directory cannot be read or has more entries than that."""
    if not 0 < directory_entries(path, most) <= most:
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, OverflowError):
        return None


def directory_entries(path: Path, most: int) -> int:
    """At most how many entries the ZIP's directory has, counted without believing it, and only beyond `most`.

    `zipfile` makes an object of each before anybody can ask how many there are.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return sum(1 for _ in islice(re.finditer(b"PK\x01\x02", content), most + 1))


def _inside_ole(content: mmap.mmap) -> Detected | None:
    """By the names of its streams: directory entries are 128 bytes each and lie in sectors of 512 or 4,096."""
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
