"""Decides whether a text is a table, and which sign separates its cells.

`csv.Sniffer` accepts any repeated character and finds tables in prose. Here the sign must be one of four and give
nearly all lines the same number of cells. In doubt, it is not a table.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.office.office_limits import OfficeLimits

_SIGNS = ("\t", ";", "|", ",")
"""The most reliable first: commas also occur in prose and in numbers."""
_SAMPLE = 200
_ALIKE = 0.9
"""The fraction of the lines that must have the same number of cells; titles and totals may differ."""
_CHOSEN = re.compile(r"^sep=(.)\n")


def rows_of(text: str, limits: OfficeLimits) -> list[list[str]] | None:
    """The rows of a CSV text without the blank ones, all of the same length; None if it is not CSV."""
    text, chosen = _chosen(text)
    sign = chosen or _sign(text)
    rows = [row for row in _parsed(text, sign) or () if any(row)] if sign is not None else []
    return _same_length(rows, limits) if rows else None


def cells_of(text: str, limits: OfficeLimits) -> list[list[str]]:
    """The rows of a text that is read as a table, whatever it is, with the blank rows.

    In doubt, the sign is the one that most lines have. An invoice has lines above its table, of another length. A text
    without any of the signs has one column.
    """
    text, chosen = _chosen(text)
    sign = chosen or _sign(text) or _most_frequent(text)
    rows = _parsed(text, sign) if sign is not None else None
    return _same_length(rows if rows is not None else [[line.strip()] for line in text.split("\n")], limits)


def _chosen(text: str) -> tuple[str, str | None]:
    """The text, and the sign that it names itself, in Excel's way."""
    chosen = _CHOSEN.match(text)
    if chosen is None or chosen[1] in '"\n':
        return text, None
    return text[chosen.end() :], chosen[1]


def _most_frequent(text: str) -> str | None:
    lines = text.split("\n", _SAMPLE)[:_SAMPLE]
    counts = {sign: sum(sign in line for line in lines) for sign in _SIGNS}
    best = max(_SIGNS, key=counts.__getitem__)
    return best if counts[best] else None


def _same_length(rows: list[list[str]], limits: OfficeLimits) -> list[list[str]]:
    width = max(map(len, rows), default=0)
    if len(rows) > limits.rows:
        raise DocumentRejected(
            FaultCode.TOO_MANY_ROWS, DocumentMessage("text_file.too_many_rows", rows=len(rows), most=limits.rows)
        )
    if len(rows) * width > limits.cells:
        raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("text_file.too_many_cells", most=limits.cells))
    return [row + [""] * (width - len(row)) for row in rows]


def _sign(text: str) -> str | None:
    sample = "\n".join(text[: _SAMPLE * 1000].split("\n")[:_SAMPLE])
    best: tuple[float, int] | None = None
    found = None
    for sign in _SIGNS:
        rows = [row for row in _parsed(sample, sign) or () if any(row)] if sign in sample else None
        score = _score(rows, sample, sign) if rows else None
        if score is not None and (best is None or score > best):
            best, found = score, sign
    return found


def _score(rows: list[list[str]], sample: str, sign: str) -> tuple[float, int] | None:
    """How similar and how wide the rows are; None if this is not a table."""
    width, times = Counter(map(len, rows)).most_common(1)[0]
    if len(rows) < 2 or width < 2 or times < _ALIKE * len(rows):
        return None
    if sign in ",;" and width < 5:
        # In a sentence, a comma is followed by a space; in a table it usually is not.
        spaced = sample.count(sign + " ")
        if spaced > 0.5 * sample.count(sign):
            return None
    if sign == "," and width == 2 and all(_is_decimal(row) for row in rows):
        return None  # a column of numbers with decimal commas
    return times / len(rows), width


def _is_decimal(row: list[str]) -> bool:
    return len(row) == 2 and all(part.strip().lstrip("-+").replace(".", "").isdigit() for part in row)


def _parsed(text: str, sign: str) -> list[list[str]] | None:
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text), delimiter=sign)]
    except csv.Error:  # a cell of more than 128 KB: an unclosed quotation mark in a text that is not a table
        return None
