"""Lines of a table that span its columns: lines to skip, notes, and carried sums."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import re2

from waybill_documents.geometry import Place, around, cut
from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import TableRule
from waybill_documents.tables.assembly import Assembly, Piece, RawRow
from waybill_documents.text_lines import Line, fold
from waybill_documents.value_text import Unreadable, read
from waybill_documents.values import Carry


class LinesApart:
    """Recognises spanning lines and keeps their values."""

    def __init__(self, rule: TableRule, locale: LocaleRules, assembly: Assembly) -> None:
        self.carries: list[Carry] = []
        self._locale = locale
        self._assembly = assembly
        self._skip = folded(rule.skip)
        self._carry = {"out": folded(rule.carry.out), "into": folded(rule.carry.into)} if rule.carry else {}
        self._phrases = (*self._skip, *self._carry.get("out", ()), *self._carry.get("into", ()))
        self._notes = [(column, re2.compile(its.pattern), its.keep == "line") for column, its in rule.notes.items()]

    def has(self, line: Line) -> bool:
        """Whether a line looks like a spanning line. No other line is skipped, a note or a carried sum."""
        if line.begins_with(self._phrases):
            return True
        return bool(self._notes) and any(pattern.search(line.text) for _, pattern, _ in self._notes)

    def skips(self, line: Line) -> bool:
        """Whether the mapping says to leave the line out."""
        return line.begins_with(self._skip)

    def carries_out(self, line: Line) -> bool:
        """Whether the line begins like one that carries a sum to the next page."""
        return line.begins_with(self._carry.get("out", ()))

    def takes_note(self, line: Line, page: int) -> bool:
        """Whether the line is a note. A note becomes a row of its own."""
        for column, pattern, is_whole in self._notes:
            found = pattern.search(line.text)
            if found is not None:
                words = line.words if is_whole else cut(line.words, *found.span(1 if pattern.groups else 0))
                if words:
                    self._assembly.add(RawRow({column: [Piece(page, words)]}))
                return True
        return False

    def takes_carry(self, line: Line, page: int, direction: Literal["out", "into"]) -> bool:
        """Whether the line carries a sum. A description may begin with the same words but has no amount."""
        if not line.begins_with(self._carry.get(direction, ())):
            return False
        for word in reversed(line.words):
            try:
                amount = read(word.text, "decimal", self._locale)
            except Unreadable:
                continue
            if isinstance(amount, Decimal):
                place = Place(page, around([word]))
                self.carries.append(Carry(page, direction, amount, len(self._assembly.rows), place, word.text))
                return True
        return False


def folded(phrases: tuple[str, ...] | None) -> tuple[str, ...]:
    """Phrases folded for comparison with lines."""
    return tuple(fold(phrase) for phrase in phrases or ())
