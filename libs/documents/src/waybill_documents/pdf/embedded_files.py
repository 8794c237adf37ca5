"""The files embedded in a PDF: a list of them, and the content of one. Nothing is done with a content but counting it.

Names and media types are what the file claims. Both are shortened and cleaned, because they are shown to people.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from dataclasses import dataclass
from typing import Any

import pypdfium2
import pypdfium2.raw

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.pdf_limits import PdfLimits

_LONGEST_NAME = 200
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,80}")
_BY_NAME = {
    "csv": "text/csv",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "jpg": "image/jpeg",
    "json": "application/json",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "zip": "application/zip",
}
"""For files without a declared type. Python's own list reads files of the machine, which a parser may not."""
_UNKNOWN = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class EmbeddedFile:
    """One of them, as the record lists it."""

    number: int
    """Counted from 1, in the order of the PDF."""
    name: str
    media_type: str
    bytes: int
    sha256: str | None
    """None for a file that is damaged or too large to be read."""

    def to_json(self) -> dict[str, Any]:
        """The entry as JSON."""
        return {
            "number": self.number,
            "name": self.name,
            "media_type": self.media_type,
            "bytes": self.bytes,
            "sha256": self.sha256,
        }


def embedded_files(document: pypdfium2.PdfDocument, limits: PdfLimits) -> list[EmbeddedFile]:
    """The first of them, up to a limit. Together, no more bytes are read than one may have."""
    found: list[EmbeddedFile] = []
    left = limits.attachment_bytes
    for number in range(1, min(document.count_attachments(), limits.attachments) + 1):
        try:
            attachment = document.get_attachment(number - 1)
            name = _last_part(name_of(attachment))
        except pypdfium2.PdfiumError:
            continue
        size = _size(attachment)
        content = _content(attachment) if 0 < size <= left else b"" if size == 0 else None
        left -= len(content or b"")
        digest = hashlib.sha256(content).hexdigest() if content is not None else None
        found.append(EmbeddedFile(number, name or f"{number}", _media_type(attachment, name), size, digest))
    return found


def embedded_file(document: pypdfium2.PdfDocument, number: int, limits: PdfLimits) -> bytes:
    """The content of one. Raises DocumentRejected NO_SUCH_ATTACHMENT, TOO_MUCH_TEXT or UNREADABLE."""
    count = min(document.count_attachments(), limits.attachments)
    if not 1 <= number <= count:
        message = DocumentMessage("pdf.no_such_attachment", number=number, count=count)
        raise DocumentRejected(FaultCode.NO_SUCH_ATTACHMENT, message)
    try:
        attachment = document.get_attachment(number - 1)
    except pypdfium2.PdfiumError:
        raise _damaged(number) from None
    size = _size(attachment)
    if size > limits.attachment_bytes:
        message = DocumentMessage("pdf.attachment_too_large", number=number, bytes=size, most=limits.attachment_bytes)
        raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, message)
    content = _content(attachment) if size else b""
    if content is None:
        raise _damaged(number)
    return content


def _damaged(number: int) -> DocumentRejected:
    return DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("pdf.attachment_damaged", number=number))


def _size(attachment: Any) -> int:
    """What the file says. pypdfium2 allocates that much, so it is asked before anything is read."""
    size = ctypes.c_ulong()
    pypdfium2.raw.FPDFAttachment_GetFile(attachment, None, 0, size)
    return int(size.value)


def _content(attachment: Any) -> bytes | None:
    try:
        return bytes(attachment.get_data())
    except pypdfium2.PdfiumError:
        return None


def _media_type(attachment: Any, name: str) -> str:
    length = pypdfium2.raw.FPDFAttachment_GetSubtype(attachment, None, 0)
    declared = ""
    if 2 < length <= 512:
        buffer = ctypes.create_string_buffer(length)
        pypdfium2.raw.FPDFAttachment_GetSubtype(
            attachment, ctypes.cast(buffer, ctypes.POINTER(pypdfium2.raw.FPDF_WCHAR)), length
        )
        declared = buffer.raw[: length - 2].decode("utf-16-le", "replace").strip().lower()
    if _MEDIA_TYPE.fullmatch(declared):
        return declared
    return _BY_NAME.get(name.lower().rpartition(".")[2], _UNKNOWN)


def name_of(attachment: Any) -> str:
    """The name that an embedded file claims, without what cannot be printed. Raises PdfiumError if it has none.

    pypdfium2 raises for halves of surrogate pairs, and one odd name must not make a whole document unreadable.
    """
    length = pypdfium2.raw.FPDFAttachment_GetName(attachment, None, 0)
    if not length:
        raise pypdfium2.PdfiumError("an embedded file without a name")
    buffer = ctypes.create_string_buffer(length)
    pypdfium2.raw.FPDFAttachment_GetName(
        attachment, ctypes.cast(buffer, ctypes.POINTER(pypdfium2.raw.FPDF_WCHAR)), length
    )
    name = buffer.raw[: length - 2].decode("utf-16-le", "replace")
    return "".join(letter for letter in name if letter.isprintable())


def _last_part(name: str) -> str:
    """A name for people, without folders."""
    return name.replace("\\", "/").rpartition("/")[2][:_LONGEST_NAME].strip()
