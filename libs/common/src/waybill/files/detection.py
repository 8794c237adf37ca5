"""Detects a file's type by its content. Its name and its declared type are ignored.

A detected type is only a first look: a file that starts like a PDF may still be broken.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from enum import StrEnum
from typing import BinaryIO

from waybill.files.containers import leading_names, ole2_names, zip_names

HEAD = 64 * 1024
"""The most bytes that are read from the beginning."""


class FileType(StrEnum):
    PDF = "pdf"
    DOCX = "docx"
    XLSX = "xlsx"
    PPTX = "pptx"
    ZIP = "zip"
    DOC = "doc"
    XLS = "xls"
    PPT = "ppt"
    ENCRYPTED_OFFICE = "encrypted_office"
    """A docx, xlsx or pptx with a password."""
    OLE2 = "ole2"
    """Another compound file: an Outlook message, an installer."""
    XML = "xml"
    JSON = "json"
    TEXT = "text"
    PNG = "png"
    JPEG = "jpeg"
    GZIP = "gzip"
    EMPTY = "empty"
    UNKNOWN = "unknown"

    @property
    def media_type(self) -> str:
        return _MEDIA_TYPES.get(self, "application/octet-stream")


_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_MEDIA_TYPES = {
    FileType.PDF: "application/pdf",
    FileType.DOCX: f"{_OPEN_XML}.wordprocessingml.document",
    FileType.XLSX: f"{_OPEN_XML}.spreadsheetml.sheet",
    FileType.PPTX: f"{_OPEN_XML}.presentationml.presentation",
    FileType.ZIP: "application/zip",
    FileType.DOC: "application/msword",
    FileType.XLS: "application/vnd.ms-excel",
    FileType.PPT: "application/vnd.ms-powerpoint",
    FileType.XML: "application/xml",
    FileType.JSON: "application/json",
    FileType.TEXT: "text/plain",
    FileType.PNG: "image/png",
    FileType.JPEG: "image/jpeg",
    FileType.GZIP: "application/gzip",
}

_SIGNATURES = (
    (b"%PDF-", FileType.PDF),
    (b"PK\x03\x04", FileType.ZIP),
    (b"PK\x05\x06", FileType.ZIP),  # an empty one
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FileType.OLE2),
    (b"\x89PNG\r\n\x1a\n", FileType.PNG),
    (b"\xff\xd8\xff", FileType.JPEG),
    (b"\x1f\x8b\x08", FileType.GZIP),
)
_CONTENT_TYPES = "[Content_Types].xml"
_OPEN_XML_PARTS = {
    "word/document.xml": FileType.DOCX,
    "xl/workbook.xml": FileType.XLSX,
    "ppt/presentation.xml": FileType.PPTX,
}
_OLE2_STREAMS = {
    "WordDocument": FileType.DOC,
    "Workbook": FileType.XLS,
    "Book": FileType.XLS,
    "PowerPoint Document": FileType.PPT,
    "EncryptedPackage": FileType.ENCRYPTED_OFFICE,
}
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Looking for each of them in turn is ten times as fast as one regular expression for all.
_BINARY = tuple(map(chr, (*range(0x08), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0xFFFE, 0xFFFF)))
_ASCII = bytes(range(0x80))
_XML = re.compile(r"<\?xml\s|<!--|<!DOCTYPE\s|<[^\W\d][\w.:-]*[\s/>]")
_HTML = re.compile(r"<!DOCTYPE\s+html|<html[\s>]", re.IGNORECASE)
_JSON = re.compile(r"""\{\s*["}]|\[\s*(?:[\[\]{"\d-]|true|false|null)""")


def detect(file: BinaryIO) -> FileType:
    """The type of an open, seekable file. The file's position does not change."""
    position = file.tell()
    try:
        return _detect(file)
    finally:
        file.seek(position)


def detect_bytes(data: bytes) -> FileType:
    return detect(io.BytesIO(data))


def _detect(file: BinaryIO) -> FileType:
    file.seek(0)
    head = file.read(HEAD)
    if not head:
        return FileType.EMPTY
    found = next((kind for start, kind in _SIGNATURES if head.startswith(start)), None)
    if found is FileType.ZIP:
        return _inside_zip(file, head)
    if found is FileType.OLE2:
        names = ole2_names(file)
        return next((_OLE2_STREAMS[name] for name in names if name in _OLE2_STREAMS), FileType.OLE2)
    if found is not None:
        return found
    if _is_late_pdf(file, head):
        return FileType.PDF
    return _detect_text(head, whole=len(head) < HEAD)


def _inside_zip(file: BinaryIO, head: bytes) -> FileType:
    names = set(zip_names(file))
    if not names:
        return _cut_off(head)
    if _CONTENT_TYPES not in names:
        return FileType.ZIP
    return next((kind for part, kind in _OPEN_XML_PARTS.items() if part in names), FileType.ZIP)


def _cut_off(head: bytes) -> FileType:
    """The type of a ZIP without a directory, so that its sender hears that a document is damaged, not that it is none.

    Open XML begins with a part that no other ZIP has. If the file ends before it says more, it is most likely a letter.
    """
    names = list(leading_names(head))
    if _CONTENT_TYPES not in names:
        return FileType.ZIP
    folders = {name.partition("/")[0] for name in names}
    return FileType.XLSX if "xl" in folders else FileType.PPTX if "ppt" in folders else FileType.DOCX


def _is_late_pdf(file: BinaryIO, head: bytes) -> bool:
    """Whether it is a PDF with up to 1024 other bytes before its header, as printers and mailers add them.

    A text about PDFs may contain `%PDF-` too, but only a PDF also ends like one.
    """
    at = head.find(b"%PDF-", 0, 1024 + 5)
    if at < 0:
        return False
    file.seek(max(0, file.seek(0, 2) - 1024))
    return not head[:at].strip(codecs.BOM_UTF8 + b" \t\r\n\0") or b"startxref" in file.read()


def _detect_text(head: bytes, *, whole: bool) -> FileType:
    text = _decoded(head)
    if text is None or any(binary in text for binary in _BINARY):
        return FileType.UNKNOWN
    start = text.lstrip()
    if _HTML.match(start):
        return FileType.TEXT
    if _XML.match(start):
        return FileType.XML
    if _JSON.match(start) and (not whole or _parses(text)):
        return FileType.JSON
    return FileType.TEXT


def _decoded(head: bytes) -> str | None:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return _decode(head[len(mark) :], encoding)
    text = _decode(head, "utf-8")
    if text is not None:
        return text
    # It may be an older encoding: mostly ASCII with a few other bytes. The reader has to find out which.
    if b"\0" in head:
        return None  # most other files have one soon, and counting takes longer
    return head.decode("latin-1") if len(head.translate(None, _ASCII)) <= 0.3 * len(head) else None


def _decode(data: bytes, encoding: str) -> str | None:
    try:
        # The decoder is incremental, because the head may end in the middle of a character.
        return codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return None


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
