"""Recognises a document by its content. Its name and the media type that the client claims are ignored.

Only a limited part of the file is looked at, and nothing is unpacked: that is the work of a parser in its sandbox.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from waybill.files import FileType, detect
from waybill_documents.messages import DocumentMessage

if TYPE_CHECKING:  # parsers use this module too, and load nothing of the service
    from waybill_gateway.content_negotiation import Kind

_HEAD = 64 * 1024
_PDF_WITHIN = 1024
"""PDF readers accept this many bytes of anything before the header, because printers and mailers add some."""
_BLANK = b" \t\r\n"

KINDS: dict[FileType, Kind] = {
    FileType.PDF: "pdf",
    FileType.DOCX: "docx",
    FileType.XLSX: "xlsx",
    FileType.TEXT: "text",
    FileType.JSON: "json",
    FileType.XML: "xml",
}
"""What we read. Everything else is refused."""

SAVE_ANEW = {
    FileType.DOC: DocumentMessage("office.old_word"),
    FileType.XLS: DocumentMessage("office.old_excel"),
    FileType.PPTX: DocumentMessage("office.presentation"),
}
"""What we do not read, but can say how to save so that we do."""


def sniff(file: Path) -> FileType:
    """What the file is."""
    with file.open("rb") as opened:
        return sniff_opened(opened)


def sniff_opened(opened: BinaryIO) -> FileType:
    """What an open file is, which is at its beginning."""
    head = opened.read(_HEAD)
    # Whatever begins like JSON is taken for it, so that its reader can say where it is wrong. It comes first,
    # because the text of a JSON document may contain "%PDF-".
    start = head.removeprefix(codecs.BOM_UTF8).lstrip(_BLANK)
    if start[:1] in (b"{", b"[") and _is_utf8(head):
        return FileType.JSON
    found = detect(opened)
    if found in (FileType.UNKNOWN, FileType.TEXT, FileType.XML) and b"%PDF-" in head[: _PDF_WITHIN + 5]:
        # It may be a damaged PDF. A PDF reader says more about it than a text reader.
        return FileType.PDF
    if found is FileType.JSON:  # in UTF-16; JSON is UTF-8
        return FileType.TEXT
    return FileType.EMPTY if not head.strip() else found


def _is_utf8(head: bytes) -> bool:
    try:
        # The decoder is incremental, because the head may end in the middle of a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return "\0" not in text
