"""How much of an Office or text file is read before it is refused.

Every limit is checked before the memory is spent, not after. They are far above what people write and far below what
hurts a process with half a gigabyte.
"""

from __future__ import annotations

from dataclasses import dataclass

from waybill_documents.faults import DocumentFault, FaultCode


@dataclass(frozen=True, slots=True)
class OfficeLimits:
    """What a document may cost. The defaults read a workbook of half a million filled cells."""

    unpacked_bytes: int = 64 * 2**20
    """All XML in the package. Pictures and macros are never unpacked and do not count."""
    ratio: int = 200
    """How many times its size a package may unpack to, once it unpacks to more than a few megabytes."""
    parts: int = 10_000
    """Files in the package."""
    elements: int = 2_000_000
    """XML elements of a Word document. Each costs some hundred bytes as a tree, however short it is."""
    sheets: int = 1_000
    rows: int = 200_000
    """Rows between the first and the last filled one of a sheet."""
    cells: int = 1_000_000
    """Filled cells of a workbook, and cells of the rectangle around a sheet's filled ones."""
    characters: int = 20_000_000
    """Characters of text that come out, those of tables counted again."""
    text_bytes: int = 20_000_000
    """Size of a plain text file."""


def too_much_text(limit: int) -> DocumentFault:
    """More text than `limits.characters`."""
    return DocumentFault(
        FaultCode.TOO_MUCH_TEXT, f"The document holds more text than the {limit:,} characters that can be read."
    )


class Budget:
    """The characters that may still come out."""

    def __init__(self, limits: OfficeLimits) -> None:
        self._limit = limits.characters
        self._left = limits.characters

    def spend(self, characters: int) -> None:
        """Take so many, or refuse the document."""
        self._left -= characters
        if self._left < 0:
            raise too_much_text(self._limit)
