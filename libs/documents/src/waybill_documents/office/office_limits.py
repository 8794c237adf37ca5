"""Limits on Office and text files.

Every limit is checked before memory is spent. The limits are far above what people write and far below what hurts a
process with half a gigabyte.
"""

from __future__ import annotations

from dataclasses import dataclass

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage


@dataclass(frozen=True, slots=True)
class OfficeLimits:
    """Limits on one document. The defaults allow a workbook of half a million filled cells."""

    unpacked_bytes: int = 64 * 2**20
    """All XML in the package. Pictures and macros are never unpacked and do not count."""
    ratio: int = 200
    """The largest compression ratio of a package that unpacks to more than a few megabytes."""
    parts: int = 10_000
    """Files in the package."""
    elements: int = 2_000_000
    """XML elements of a Word document. Each needs some hundred bytes as a tree, however short it is."""
    sheets: int = 1_000
    rows: int = 200_000
    """Rows between the first and the last filled one of a sheet."""
    cells: int = 1_000_000
    """Filled cells of a workbook, and all cells of the rectangle around a sheet's filled cells."""
    characters: int = 20_000_000
    """Characters in the result; text in tables counts twice."""
    text_bytes: int = 20_000_000
    """Size of a plain text file."""


def too_much_text(limit: int) -> DocumentRejected:
    """The fault for more text than `limits.characters`."""
    return DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("office.too_much_text", most=limit))


class Budget:
    """Counts the characters of the result against the limit."""

    def __init__(self, limits: OfficeLimits) -> None:
        self._limit = limits.characters
        self._left = limits.characters

    def spend(self, characters: int) -> None:
        """Count characters, and refuse the document beyond the limit."""
        self._left -= characters
        if self._left < 0:
            raise too_much_text(self._limit)
