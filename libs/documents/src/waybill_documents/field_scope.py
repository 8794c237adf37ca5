"""Limits a field's search to a part of the page: an area, the text after a phrase, or the text before one."""

from __future__ import annotations

from waybill_documents.geometry import Box, Page, Word
from waybill_documents.mapping.model import FieldRule
from waybill_documents.sheets.cell_names import cells_box
from waybill_documents.sheets.sheet_choice import is_sheet
from waybill_documents.text_lines import Lines, fold, line_of


class FieldScope:
    """The part of each page that one rule searches."""

    def __init__(self, rule: FieldRule) -> None:
        self._area = rule.area
        self._cells = cells_box(rule.cells) if rule.cells else None
        self._sheet = rule.sheet
        self._after = fold(rule.after) if rule.after else None
        self._before = fold(rule.before) if rule.before else None

    def of(self, lines: Lines) -> Lines | None:
        """The page's lines without the words outside the scope; None if the scope does not include this page."""
        sheet = lines.page.sheet
        if sheet is not None and self._sheet is not None and not is_sheet(self._sheet, sheet):
            return None
        if (self._cells if sheet is None else self._area) is not None:
            return None  # a sheet has no percentages, and a page has no cells
        if self._area is None and self._cells is None and self._after is None and self._before is None:
            return lines
        after = _anchor(lines, self._after)
        before = _anchor(lines, self._before)
        if (self._after and after is None) or (self._before and before is None):
            return None
        area = self._area_on(lines.page)
        kept = []
        for line in lines:
            words = [
                word
                for word in line.words
                if (area is None or _inside(word, area))
                and (after is None or _follows(word, after))
                and (before is None or _precedes(word, before))
            ]
            if words:
                kept.append(line_of(words))
        return Lines(lines.page, kept)

    def _area_on(self, page: Page) -> Box | None:
        if self._cells is not None and page.sheet is not None:
            return page.sheet.points(self._cells)
        area = self._area
        if area is None:
            return None
        return (
            page.width * area.left / 100,
            page.height * area.top / 100,
            page.width * area.right / 100,
            page.height * area.bottom / 100,
        )


def _anchor(lines: Lines, phrase: str | None) -> Box | None:
    span = next(lines.find(phrase), None) if phrase else None
    return lines.box(span) if span else None


def _inside(word: Word, area: Box) -> bool:
    x, y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    return area[0] <= x <= area[2] and area[1] <= y <= area[3]


def _follows(word: Word, anchor: Box) -> bool:
    middle = (word.top + word.bottom) / 2
    return middle > anchor[3] or (middle > anchor[1] and word.left >= anchor[2])


def _precedes(word: Word, anchor: Box) -> bool:
    middle = (word.top + word.bottom) / 2
    return middle < anchor[1] or (middle < anchor[3] and word.right <= anchor[0])
