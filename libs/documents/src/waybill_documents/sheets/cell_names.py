"""Names of cells as Excel writes them: `C7`, `B2:D9`, `'My sheet'!C7`."""

from __future__ import annotations

import re

from waybill_documents.geometry import Box

MOST_COLUMNS, MOST_ROWS = 16_384, 1_048_576
"""As many as Excel has."""

_CELL = r"\$?([A-Za-z]{1,3})\$?([1-9][0-9]{0,6})"
_RANGE = re.compile(rf"(?:(?:'(?:[^']|'')*'|[^'!]*)!)?{_CELL}(?::{_CELL})?", re.DOTALL)
_PLAIN_SHEET = re.compile(r"[^\W\d][\w.]*")
_LOOKS_LIKE_A_CELL = re.compile(r"[A-Za-z]{1,3}[0-9]+|[Rr][0-9]*[Cc][0-9]*")


def cells_name(sheet: str | None, top: int, left: int, bottom: int, right: int) -> str:
    """The name of a rectangle of cells, both ends included and counted from 0."""
    name = f"{column_letters(left)}{top + 1}"
    if (top, left) != (bottom, right):
        name += f":{column_letters(right)}{bottom + 1}"
    return name if sheet is None else f"{_quoted(sheet)}!{name}"


def cells_box(name: str) -> Box | None:
    """The rectangle of a name, in columns and rows; None if it is not a name of cells."""
    found = _RANGE.fullmatch(name)
    if found is None:
        return None
    letters, number, last_letters, last_number = found.groups()
    one = (column_number(letters), int(number) - 1)
    other = (column_number(last_letters), int(last_number) - 1) if last_letters else one
    (left, right), (top, bottom) = sorted((one[0], other[0])), sorted((one[1], other[1]))
    return (left, top, right + 1, bottom + 1) if right < MOST_COLUMNS and bottom < MOST_ROWS else None


def column_letters(column: int) -> str:
    """The letters of a column: 0 is A, 26 is AA."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def column_number(letters: str) -> int:
    """The number of a column: A is 0, AA is 26."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number - 1


def _quoted(sheet: str) -> str:
    if _PLAIN_SHEET.fullmatch(sheet) and not _LOOKS_LIKE_A_CELL.fullmatch(sheet):
        return sheet
    return "'" + sheet.replace("'", "''") + "'"
