"""What a document is: its name and declared type must be among those that we take, and its content decides.

Uploads and samples of mappings are looked at by the same rules.

A document is looked at while it passes. Only the gateway opens it, in its sandbox.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator

from waybill.errors import NotPdf
from waybill.files import FileType, detect_bytes
from waybill.files.detection import HEAD
from waybill.messages import msg
from waybill_convert.mapping_catalogue import MappingChoice, MappingOrigin
from waybill_documents.catalogue import AUTO

SHEETS = frozenset({FileType.XLSX, FileType.TEXT})
"""Workbooks and CSV files."""

_MAGIC, _MAGIC_WITHIN = b"%PDF-", 1024
"""PDF readers accept up to this many bytes before the magic, and printers and mailers do put some there."""
_ZIP = b"PK\x03\x04"
_ZIP_END = 384 * 1024
"""The end of a ZIP that names what is inside: as much of it as `detect` reads."""
_OF_ANY = frozenset({None, "", "application/octet-stream"})
_EXCEL = "application/vnd.ms-excel"
_SHEET_TYPES = {
    ".xlsx": _OF_ANY | {FileType.XLSX.media_type, _EXCEL},
    ".xlsm": _OF_ANY | {FileType.XLSX.media_type, _EXCEL, f"{_EXCEL}.sheet.macroenabled.12"},
    # A browser on Windows asks the registry, where Excel has entered itself.
    ".csv": _OF_ANY | {"text/csv", "application/csv", "text/comma-separated-values", "text/plain", _EXCEL},
}
_TYPES = {
    ".pdf": _OF_ANY | {"application/pdf", "application/x-pdf"},
    ".xml": _OF_ANY | {"application/xml", "text/xml"},
    **_SHEET_TYPES,
}
"""What a file may be called and sent as."""


class UploadContent:
    """The content of one document. `kind` is known once all of it has passed."""

    def __init__(self, name: str, declared: str | None) -> None:
        """Raises NotPdf if nothing that we take is called or sent like this."""
        self._suffix = suffix_of(name.strip())
        if not self._suffix:
            raise NotPdf(msg("convert.upload.not_called_pdf"))
        if declared not in _TYPES[self._suffix]:
            raise NotPdf(msg("convert.upload.sent_as_other"))
        self.kind = FileType.EMPTY

    async def checked(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The document's bytes. Raises NotPdf as soon as they are nothing that we take."""
        head, end, begun = bytearray(), bytearray(), False
        async for chunk in chunks:
            if begun:
                yield chunk
                if self.kind is FileType.ZIP:
                    end += chunk
                    del end[:-_ZIP_END]
                continue
            head += chunk
            begun = _is_pdf(head) or len(head) >= HEAD
            if begun:
                self._begin(bytes(head))
                yield bytes(head)
        if not begun:
            self._begin(bytes(head))
            yield bytes(head)
        if self.kind is FileType.ZIP:
            # A ZIP names what is inside at its end. What lies between does not matter.
            self.kind = detect_bytes(bytes(head + end))
            if self.kind is not FileType.XLSX:
                raise self._refusal()

    def _begin(self, head: bytes) -> None:
        if _is_pdf(head):
            self.kind = FileType.PDF
            return
        found = detect_bytes(head)
        if found is FileType.XML:
            self.kind = found
        elif self._suffix in _SHEET_TYPES and head.startswith(_ZIP):
            self.kind = FileType.ZIP
        elif self._suffix in _SHEET_TYPES and found is FileType.TEXT and self._is_csv(head):
            self.kind = found
        else:
            raise self._refusal()

    def _is_csv(self, head: bytes) -> bool:
        """Whether a text may be a table: not a page of HTML, and with one of the signs that separate cells.

        A table of one column has none of them, so a file that is called .csv needs none. Whether there is anything in
        it to read, the mapping decides, which always has to be named.
        """
        if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<"):
            return False
        return self._suffix == ".csv" or any(sign in head for sign in b",;\t|")

    def _refusal(self) -> NotPdf:
        return NotPdf(msg("convert.upload.no_sheet") if self._suffix in _SHEET_TYPES else None)


def suffix_of(name: str) -> str:
    """The end of a document's name, in small letters, dot included; empty if it is none that we take."""
    _, dot, end = name.lower().rpartition(".")
    return dot + end if dot + end in _TYPES else ""


def suffix_of_kind(kind: FileType) -> str:
    """The suffix with which a document of a kind that we take is stored."""
    return ".csv" if kind is FileType.TEXT else f".{kind.value}"


async def kind_of_stored(chunks: AsyncIterator[bytes]) -> FileType:
    """The kind of a document that was taken before, by its beginning. A ZIP among those is a workbook."""
    head = bytearray()
    async for chunk in chunks:
        head += chunk
        if len(head) >= HEAD:
            break
    if _is_pdf(head):
        return FileType.PDF
    return FileType.XLSX if head.startswith(_ZIP) else detect_bytes(bytes(head))


def unread_by(mapping: MappingChoice, kind: FileType) -> NotPdf | None:
    """The refusal of a document that the mapping cannot read; None if it can, or if only the gateway knows."""
    if kind is FileType.XML and mapping.embedded is False:
        return NotPdf(msg("convert.upload.xml_needs_mapping", mapping=mapping.name))
    if kind not in SHEETS:
        return None
    if mapping.name == AUTO:
        return NotPdf(msg("convert.upload.sheet_needs_name"))
    # No shipped mapping reads sheets. Any other one may that reads pages, because a sheet is read as a page.
    if mapping.origin is MappingOrigin.SHIPPED or mapping.embedded:
        return NotPdf(msg("convert.upload.sheet_needs_mapping", mapping=mapping.name))
    return None


def _is_pdf(head: bytes | bytearray) -> bool:
    return _MAGIC in head[: _MAGIC_WITHIN + len(_MAGIC)]
