"""A Word or Excel package, opened by us before a library sees it.

The ZIP is read once, here, with every bound checked while reading, and handed on as a new ZIP of what was read:
stored, without duplicates, pictures, macros or odd names. So a library sees exactly what was checked, whatever the
original's directory says about sizes and places, and none of them needs to be trusted with a bomb.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from pathlib import Path

from waybill_documents.faults import DocumentFault, FaultCode
from waybill_documents.office.detection import detect, directory_entries, refuse
from waybill_documents.office.limits import OfficeLimits

_CHUNK = 256 * 1024
_RATIO_MATTERS_FROM = 4 * 2**20
_DECLARATION = re.compile(rb"""^(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?encoding\s*=\s*["']([^"']*)["']""")
_ENCODINGS = {b"utf-8", b"utf8", b"us-ascii", b"ascii"}


class Package:
    """The XML parts of a package by name; anything else is there by name only."""

    def __init__(self, parts: dict[str, bytes]) -> None:
        self.parts = parts

    def __getitem__(self, name: str) -> bytes:
        """A part, whatever the case of its name: that is how the format compares them."""
        if name in self.parts:
            return self.parts[name]
        wanted = name.lower()
        for known, content in self.parts.items():
            if known.lower() == wanted:
                return content
        raise damaged(f"it has no {name}")

    def repacked(self) -> io.BytesIO:
        """The checked parts as a ZIP."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            for name, content in self.parts.items():
                archive.writestr(zipfile.ZipInfo(name), content)
        packed.seek(0)
        return packed


def damaged(detail: str = "") -> DocumentFault:
    """The file is not what it begins like."""
    because = f" ({detail})" if detail else ""
    return DocumentFault(
        FaultCode.UNREADABLE, f"The document is damaged or incomplete{because}. Save it again, or send another copy."
    )


def open_package(path: Path, limits: OfficeLimits) -> Package:
    """Read all XML of the package, or say why not."""
    try:
        if directory_entries(path, limits.parts) > limits.parts:
            raise DocumentFault(FaultCode.TOO_MUCH_TEXT, f"The document is made of more than {limits.parts:,} parts.")
        with zipfile.ZipFile(path) as archive:
            return Package(_read_all(archive, path.stat().st_size, limits))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, OverflowError) as error:
        kind = detect(path)
        raise (damaged() if kind in ("docx", "xlsx") else refuse(kind)) from error
    except (NotImplementedError, RuntimeError) as error:  # a compression or an encryption that ZIP in Office never has
        raise damaged("it is packed in a way that Word and Excel do not use") from error


def _read_all(archive: zipfile.ZipFile, size: int, limits: OfficeLimits) -> dict[str, bytes]:
    wanted = {info.filename: info for info in archive.infolist() if _is_sane(info.filename)}
    declared = sum(info.file_size for info in wanted.values() if _is_xml(info.filename))
    _check_size(declared, size, limits)
    parts: dict[str, bytes] = {}
    total = 0
    for name, info in wanted.items():
        if not _is_xml(name):
            parts[name] = b""  # its name is kept: relationships point to it
            continue
        if info.flag_bits & 0x1:
            raise refuse("protected")
        parts[name] = _read(archive, info, size, total, limits)
        total += len(parts[name])
        _check_xml(name, parts[name])
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
        raise DocumentFault(
            FaultCode.TOO_MUCH_TEXT,
            f"The document unpacks to more than the {limits.unpacked_bytes // 2**20} MB that can be read.",
        )
    if unpacked > _RATIO_MATTERS_FROM and unpacked > limits.ratio * size:
        raise DocumentFault(
            FaultCode.TOO_MUCH_TEXT,
            f"The document unpacks to more than {limits.ratio} times its size, which no real document does.",
        )


def _check_xml(name: str, content: bytes) -> None:
    """Only UTF-8 and no document type: Office writes nothing else, and entities and other encodings hide bombs."""
    declared = _DECLARATION.match(content[:200])
    if b"\0" in content or (declared and declared[1].lower() not in _ENCODINGS):
        raise damaged(f"{_shown(name)} is not UTF-8")
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise damaged(f"{_shown(name)} declares XML entities, which Word and Excel never do")


def _shown(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable())[:100]


def _is_xml(name: str) -> bool:
    return name.lower().endswith((".xml", ".rels"))


def _is_sane(name: str) -> bool:
    """Nothing is ever unpacked to disk; names that try to leave the folder are simply not part of a document."""
    return not (name.startswith(("/", "\\")) or "\\" in name or ".." in name.split("/") or name.endswith("/"))
