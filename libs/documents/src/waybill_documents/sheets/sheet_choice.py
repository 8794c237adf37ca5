"""Whether a sheet is the one that a mapping means by a name or a number."""

from __future__ import annotations

from waybill_documents.geometry import SheetGrid
from waybill_documents.mapping.model import SheetChoice
from waybill_documents.text_lines import fold


def is_sheet(choice: SheetChoice, sheet: SheetGrid) -> bool:
    """Whether this sheet is meant. A CSV file has no name, and is sheet 1."""
    return means(choice, sheet.number, sheet.name)


def means(choice: SheetChoice, number: int, name: str | None) -> bool:
    """The same before the sheet is laid out."""
    return choice == number if isinstance(choice, int) else name is not None and fold(choice) == fold(name)
