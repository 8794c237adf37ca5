"""The numbers and bullets of Word's lists. The file does not contain them; Word counts when it shows the document.

A reader cites "3.2 Delivery", so we write that. Counting follows Word: each level of a list has a counter, and a deeper
level restarts after a shallower one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from docx.oxml.ns import qn

_PLACEHOLDER = re.compile(r"%([1-9])")
_LEVELS = 9
_MOST = 100_000
"""Larger numbers are not written in letters or Roman numerals."""
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
    (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _ListLevel:
    form: str
    text: str
    start: int


class Numbering:
    """Counts along a document, in its order."""

    def __init__(self, numbering: Any, styles: Any) -> None:
        self._lists: dict[str, dict[int, _ListLevel]] = {}
        self._counters_of: dict[str, str] = {}
        self._styles: dict[str, tuple[str | None, str | None, str | None]] = {}
        self._counters: dict[str, dict[int, int]] = defaultdict(dict)
        if numbering is not None:
            self._read_lists(numbering)
        if styles is not None:
            self._read_styles(styles)

    def label(self, paragraph: Any) -> str | None:
        """What Word shows before the paragraph, indented by its level; None when it is not in a list."""
        number, depth = self._list_of(paragraph)
        levels = self._lists.get(number or "")
        if not levels:
            return None
        level = min(max(whole(depth, 0), 0), _LEVELS - 1)
        if level not in levels or levels[level].form == "none":
            return None
        counters = self._counters[self._counters_of[number or ""]]
        counters[level] = counters.get(level, levels[level].start - 1) + 1
        for deeper in [known for known in counters if known > level]:
            del counters[deeper]
        return "  " * level + self._shown(levels, level, counters)

    @staticmethod
    def _shown(levels: dict[int, _ListLevel], level: int, counters: dict[int, int]) -> str:
        if levels[level].form == "bullet":
            return "•"  # the list's own bullet is often a private character of a symbol font

        def number(found: re.Match[str]) -> str:
            which = int(found[1]) - 1
            shape = levels.get(which)
            return _in_form(counters.get(which, shape.start if shape else 1), shape.form if shape else "decimal")

        return _PLACEHOLDER.sub(number, levels[level].text)

    def _list_of(self, paragraph: Any) -> tuple[str | None, str | None]:
        """The list and level of a paragraph: its own, or those of its style or of a base style."""
        properties = paragraph.find(qn("w:pPr"))
        number, depth = _numbers_in(properties)
        style = value(properties, "w:pStyle")
        for _ in range(_LEVELS):
            if (number is not None and depth is not None) or style not in self._styles:
                break
            styled_number, styled_depth, style = self._styles[style or ""]
            number = number if number is not None else styled_number
            depth = depth if depth is not None else styled_depth
        return number, depth

    def _read_lists(self, numbering: Any) -> None:
        shapes = {}
        for shape in numbering.iterchildren(qn("w:abstractNum")):
            shapes[shape.get(qn("w:abstractNumId"))] = dict(map(_level, shape.iterchildren(qn("w:lvl"))))
        for instance in numbering.iterchildren(qn("w:num")):
            number = instance.get(qn("w:numId")) or ""
            shape_id = value(instance, "w:abstractNumId")
            levels = dict(shapes.get(shape_id, {}))
            overrides = list(instance.iterchildren(qn("w:lvlOverride")))
            for override in overrides:
                self._override(levels, override)
            self._lists[number] = levels
            # Lists with the same definition continue each other, unless one of them restarts.
            self._counters_of[number] = f"num {number}" if overrides else f"shape {shape_id}"

    @staticmethod
    def _override(levels: dict[int, _ListLevel], override: Any) -> None:
        which = whole(override.get(qn("w:ilvl")), 0)
        for level in override.iterchildren(qn("w:lvl")):
            levels[which] = _level(level)[1]
        if (start := value(override, "w:startOverride")) is not None and which in levels:
            levels[which] = _ListLevel(levels[which].form, levels[which].text, whole(start, 1))

    def _read_styles(self, styles: Any) -> None:
        for style in styles.iterchildren(qn("w:style")):
            number, depth = _numbers_in(style.find(qn("w:pPr")))
            self._styles[style.get(qn("w:styleId")) or ""] = (number, depth, value(style, "w:basedOn"))


def value(element: Any, child: str) -> str | None:
    """`w:val` of the named child."""
    found = None if element is None else element.find(qn(child))
    return None if found is None else found.get(qn("w:val"))


def whole(text: str | None, otherwise: int) -> int:
    """A whole number of a sane size; otherwise the default."""
    return int(text) if text and len(text) <= 6 and text.isascii() and text.isdigit() else otherwise


def _numbers_in(properties: Any) -> tuple[str | None, str | None]:
    numbers = None if properties is None else properties.find(qn("w:numPr"))
    return (None, None) if numbers is None else (value(numbers, "w:numId"), value(numbers, "w:ilvl"))


def _level(level: Any) -> tuple[int, _ListLevel]:
    shape = _ListLevel(
        form=value(level, "w:numFmt") or "decimal",
        text=(value(level, "w:lvlText") or "")[:100],
        start=whole(value(level, "w:start"), 1),
    )
    return whole(level.get(qn("w:ilvl")), 0), shape


def _in_form(number: int, form: str) -> str:
    if not 0 < number < _MOST:
        return str(number)
    match form:
        case "lowerLetter" | "upperLetter":
            letter = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 100)
            return letter if form == "lowerLetter" else letter.upper()
        case "lowerRoman" | "upperRoman":
            roman = _roman(number)
            return roman if form == "lowerRoman" else roman.upper()
        case "decimalZero":
            return f"{number:02}"
        case _:
            return str(number)


def _roman(number: int) -> str:
    shown = ""
    for amount, letters in _ROMAN:
        times, number = divmod(number, amount)
        shown += letters * times
    return shown
