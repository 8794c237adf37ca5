"""Checks a workbook's XML before calamine reads it, because calamine trusts it.

calamine allocates the whole rectangle between the first and the last filled cell, and copies a shared string for every
cell that uses it. Two cells in opposite corners of a sheet, or one long string used a million times, would kill the
process without an exception. The check only counts, in one pass, with a parser that keeps nothing.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any
from xml.parsers import expat

from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage
from waybill_documents.office.office_limits import OfficeLimits, too_much_text
from waybill_documents.office.package import Package, damaged
from waybill_documents.sheets.cell_names import column_number

_ERROR_CELL = re.compile(rb"""(<(?:\w+:)?c\s[^<>]*?\bt\s*=\s*)(["'])e\2""")
_NAME_ENDS = (b" ", b">", b"/", b"\t", b"\n", b"\r")
_USUAL_COLUMN = re.compile(rb'<c r="([A-Z]{1,3})[0-9]{1,7}"')
_USUAL_ROW = re.compile(rb'<c r="[A-Z]{1,3}([0-9]{1,7})"')
_STRING_ITEM = re.compile(rb"<(?:\w+:)?si[\s/>]")
_REFERENCE = re.compile(r"^\$?([A-Za-z]{1,3})\$?([0-9]{1,7})$")


def check_workbook(package: Package, limits: OfficeLimits) -> None:
    """Refuse a workbook that is too large, and make errors such as `#DIV/0!` readable as text.

    calamine returns an empty cell for an error. If the cell is marked as a formula's text, it returns the text.
    """
    _check_targets(package)
    lengths = _string_lengths(package)
    filled = 0
    strings = 0
    for name, content in package.parts.items():
        if b"sheetData" not in content:
            continue
        if b'"e"' in content or b"'e'" in content:
            content = package.parts[name] = _ERROR_CELL.sub(rb"\1\2str\2", content)
        # Looking up each string is only worthwhile if the workbook could exceed the limit.
        doubtful = max(lengths, default=0) * content.count(b"<") > limits.characters
        bounds = _Bounds(lengths if doubtful else None)
        if doubtful or not bounds.glance(content, limits):
            bounds.feed(content)
        filled += bounds.filled
        strings += bounds.characters
        bounds.check(limits)
        if filled > limits.cells:
            raise _too_many_cells(limits)
        if strings > limits.characters:
            raise too_much_text(limits.characters)


def _too_many_cells(limits: OfficeLimits) -> DocumentRejected:
    return DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("workbook.too_many_cells", most=limits.cells))


def _check_targets(package: Package) -> None:
    """Refuse sheets that share a part: a thousand of them would be read a thousand times."""
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
        relations = etree.fromstring(package["xl/_rels/workbook.xml.rels"], parser)
        workbook = etree.fromstring(package["xl/workbook.xml"], parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise damaged(DocumentMessage("office.damage.sheet_list")) from error
    targets = {_text(one, "Id"): posixpath.normpath(_text(one, "Target").lower()) for one in relations.iter("{*}*")}
    used = [targets.get(_text(sheet, "id"), "") for sheet in workbook.iter("{*}sheet")]
    if len(set(used)) != len(used):
        raise damaged(DocumentMessage("office.damage.shared_sheets"))


def _text(element: etree._Element, attribute: str) -> str:
    """An attribute in any namespace; strict and transitional files use different ones."""
    for name, text in element.attrib.items():
        if str(name).rpartition("}")[2] == attribute:
            return str(text)
    return ""


def _string_lengths(package: Package) -> list[int]:
    """An upper bound for the length of each shared string: the length of its XML."""
    found = [content for name, content in package.parts.items() if name.lower().endswith("sharedstrings.xml")]
    if len(found) > 1:
        raise damaged(DocumentMessage("office.damage.two_text_lists"))
    starts = [item.start() for item in _STRING_ITEM.finditer(found[0])] if found else []
    ends = [*starts[1:], len(found[0])] if found else []
    return [end - start for start, end in zip(starts, ends, strict=bool(starts))]


class _Bounds:
    """The rectangle around the filled cells of a sheet."""

    def __init__(self, lengths: list[int] | None) -> None:
        self.filled = 0
        self.characters = 0
        self._lengths = lengths
        self._top = self._left = 2**31
        self._bottom = self._right = -1
        self._row = self._column = -1
        self._pending: tuple[int, int] | None = None
        self._shared = False
        self._in_value = False
        self._kinds: dict[str, str] = {}

    def glance(self, content: bytes, limits: OfficeLimits) -> bool:
        """Find the bounds ten times as fast if every cell begins the way Excel writes it.

        Empty cells count too, so the result may be too large; in that case it returns False.
        """
        cells = sum(content.count(b"<c" + end) for end in _NAME_ENDS)
        if not 0 < cells <= limits.cells or any(b":c" + end in content for end in _NAME_ENDS):
            return False
        rows = _USUAL_ROW.findall(content)
        if len(rows) != cells:
            return False
        numbers = [int(row) - 1 for row in set(rows)]
        columns = [column_number(letters.decode()) for letters in set(_USUAL_COLUMN.findall(content))]
        top, bottom, left, right = min(numbers), max(numbers), min(columns), max(columns)
        if bottom - top >= limits.rows or (bottom - top + 1) * (right - left + 1) > limits.cells:
            return False
        self.filled, self._top, self._bottom, self._left, self._right = cells, top, bottom, left, right
        return True

    def feed(self, content: bytes) -> None:
        """Look through a sheet's XML."""
        # The encoding is fixed, so that the file cannot declare another one; see package._check_xml.
        parser = expat.ParserCreate("utf-8")
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        if self._lengths is not None:
            parser.buffer_text = True
            parser.CharacterDataHandler = self._value
        try:
            parser.Parse(content, True)
        except expat.ExpatError as error:
            raise damaged(DocumentMessage("office.damage.sheet_broken")) from error

    def check(self, limits: OfficeLimits) -> None:
        """Refuse a rectangle that is too large, whether filled or not."""
        if self.filled > limits.cells:
            raise _too_many_cells(limits)
        if not self.filled:
            return
        rows, columns = self._bottom - self._top + 1, self._right - self._left + 1
        if rows > limits.rows:
            raise DocumentRejected(
                FaultCode.TOO_MANY_ROWS, DocumentMessage("workbook.too_many_rows", rows=rows, most=limits.rows)
            )
        if rows * columns > limits.cells:
            raise DocumentRejected(
                FaultCode.TOO_MUCH_TEXT,
                DocumentMessage("workbook.too_wide", rows=rows, columns=columns, most=limits.cells),
            )

    def _start(self, name: str, attributes: list[Any]) -> None:
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) > 1000:
                raise damaged(DocumentMessage("office.damage.sheet_broken"))
            kind = self._kinds[name] = name.rpartition(":")[2]
        if kind == "c":
            self._cell(attributes)
        elif kind in ("v", "is", "t"):
            self._in_value = kind == "v"
            if self._pending is not None:
                self._fill(*self._pending)
                self._pending = None
        elif kind == "row":
            self._start_row(attributes)
        else:
            self._in_value = False

    def _start_row(self, attributes: list[Any]) -> None:
        self._pending = None
        self._column = -1
        self._row += 1
        if "r" in attributes[::2]:
            number = attributes[attributes.index("r") + 1]
            if not (number.isascii() and number.isdigit() and len(number) <= 7):
                raise damaged(DocumentMessage("office.damage.impossible_row"))
            self._row = int(number) - 1

    def _cell(self, attributes: list[Any]) -> None:
        self._column += 1
        self._shared = False
        row = self._row
        for at in range(0, len(attributes), 2):
            if attributes[at] == "r":
                found = _REFERENCE.match(attributes[at + 1])
                if found is None:
                    raise damaged(DocumentMessage("office.damage.impossible_cell"))
                self._column = column_number(found[1])
                row = int(found[2]) - 1  # may contradict its row; calamine uses the cell's reference
            elif attributes[at] == "t":
                self._shared = attributes[at + 1] == "s"
        self._pending = (row, self._column)

    def _fill(self, row: int, column: int) -> None:
        self.filled += 1
        self._top, self._bottom = min(self._top, row), max(self._bottom, row)
        self._left, self._right = min(self._left, column), max(self._right, column)

    def _value(self, text: str) -> None:
        if self._in_value and self._shared and self._lengths is not None:
            self._in_value = False
            text = text.strip()
            if text.isascii() and text.isdigit() and len(text) <= 9 and int(text) < len(self._lengths):
                self.characters += self._lengths[int(text)]
