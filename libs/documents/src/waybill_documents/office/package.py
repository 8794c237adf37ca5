"""Reads and checks a Word or Excel package before a library sees it.

The ZIP is read once, with every limit checked while reading, and passed on as a new ZIP: uncompressed, without
duplicates, pictures, macros or odd names. A library therefore sees exactly what was checked, whatever the original's
directory claims, and we need not trust it with a zip bomb. Strict Open XML is the usual Transitional one with other
names; it gets the usual names here, because the libraries know no others.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from pathlib import Path

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.office.detection import detect, directory_entries, refuse
from waybill_documents.office.office_limits import OfficeLimits

_CHUNK = 256 * 1024
_RATIO_MATTERS_FROM = 4 * 2**20
_DECLARATION = re.compile(rb"""^(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?encoding\s*=\s*["']([^"']*)["']""")
_STRICT = re.compile(rb"""\b(xmlns(?::[\w.-]+)?|Type)(\s*=\s*["'])http://purl\.oclc\.org/ooxml/(\w+)/""", re.ASCII)
"""Where a part names the namespaces and relationships of Strict Open XML. Text never looks like this."""
_TRANSITIONAL = rb"\1\2http://schemas.openxmlformats.org/\3/2006/"
_ENCODINGS = {b"utf-8", b"utf8", b"us-ascii", b"ascii"}


class Package:
    """The parts of a package by name. Parts that are not XML are empty."""

    def __init__(self, parts: dict[str, bytes]) -> None:
        self.parts = parts

    def __getitem__(self, name: str) -> bytes:
        """A part by its name. The format ignores case in names."""
        if name in self.parts:
            return self.parts[name]
        wanted = name.lower()
        for known, content in self.parts.items():
            if known.lower() == wanted:
                return content
        raise damaged(DocumentMessage("office.damage.part_missing", part=name))

    def repacked(self) -> io.BytesIO:
        """The checked parts as a ZIP."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            for name, content in self.parts.items():
                archive.writestr(zipfile.ZipInfo(name), content)
        packed.seek(0)
        return packed


def damaged(why: DocumentMessage | None = None) -> DocumentRejected:
    """The file begins like an Office document but is damaged."""
    return DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("office.damaged", why=why))


def open_package(path: Path, limits: OfficeLimits) -> Package:
    """Read all XML of the package. Raises `DocumentRejected`."""
    try:
        if directory_entries(path, limits.parts) > limits.parts:
            raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("office.too_many_parts", most=limits.parts))
        with zipfile.ZipFile(path) as archive:
            return Package(_read_all(archive, path.stat().st_size, limits))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, OverflowError) as error:
        kind = detect(path)
        raise (damaged() if kind in ("docx", "xlsx") else refuse(kind)) from error
    except (NotImplementedError, RuntimeError) as error:  # a compression or encryption that Office does not use
        raise damaged(DocumentMessage("office.damage.packing")) from error


def _read_all(archive: zipfile.ZipFile, size: int, limits: OfficeLimits) -> dict[str, bytes]:
    wanted = {info.filename: info for info in archive.infolist() if _is_sane(info.filename)}
    declared = sum(info.file_size for info in wanted.values() if _is_xml(info.filename))
    _check_size(declared, size, limits)
    parts: dict[str, bytes] = {}
    total = 0
    for name, info in wanted.items():
        if not _is_xml(name):
            parts[name] = b""  # the name is kept, because relationships refer to it
            continue
        if info.flag_bits & 0x1:
            raise refuse("protected")
        parts[name] = _read(archive, info, size, total, limits)
        total += len(parts[name])
        _check_xml(name, parts[name])
        parts[name] = _STRICT.sub(_TRANSITIONAL, parts[name])
    return parts


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int, before: int, limits: OfficeLimits) -> bytes:
    content = bytearray()
    with archive.open(info) as file:
        while chunk := file.read(_CHUNK):
            content += chunk
            _check_size(before + len(content), size, limits)
    return bytes(content)


def _check_size(unpacked: int, size: int, limits: OfficeLimits) -> None:
    if unpacked > limits.unpacked_bytes:
        raise DocumentRejected(
            FaultCode.TOO_MUCH_TEXT,
            DocumentMessage("office.unpacks_too_large", megabytes=limits.unpacked_bytes // 2**20),
        )
    if unpacked > _RATIO_MATTERS_FROM and unpacked > limits.ratio * size:
        raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("office.unpacks_too_far", times=limits.ratio))


def _check_xml(name: str, content: bytes) -> None:
    """Allow only UTF-8 and no document type. Office writes nothing else; entities and other encodings hide bombs."""
    declared = _DECLARATION.match(content[:200])
    if b"\0" in content or (declared and declared[1].lower() not in _ENCODINGS):
        raise damaged(DocumentMessage("office.damage.not_utf_8", part=_shown(name)))
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise damaged(DocumentMessage("office.damage.entities", part=_shown(name)))


def _shown(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable())[:100]


def _is_xml(name: str) -> bool:
    return name.lower().endswith((".xml", ".rels"))


def _is_sane(name: str) -> bool:
    """Whether the name is a normal one. Nothing is unpacked to disk; parts with other names are ignored."""
    return not (name.startswith(("/", "\\")) or "\\" in name or ".." in name.split("/") or name.endswith("/"))
