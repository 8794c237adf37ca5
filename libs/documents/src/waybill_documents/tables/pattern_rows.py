"""Finds rows by a pattern, for tables without recognisable columns."""

from __future__ import annotations

from collections.abc import Mapping

import re2

from waybill_documents.geometry import cut
from waybill_documents.locales import LocaleRules
from waybill_documents.tables.assembly import Assembly, Piece, RawRow
from waybill_documents.tables.spanning_lines import LinesApart
from waybill_documents.tables.unread_lines import FieldLines, UnreadLines
from waybill_documents.text_lines import Line
from waybill_documents.value_text import Unreadable, read


class MatchingRows:
    def __init__(
        self,
        pattern: str,
        numbers: int,
        locale: LocaleRules,
        assembly: Assembly,
        apart: LinesApart,
        unread: UnreadLines,
        fields: FieldLines,
    ) -> None:
        self._pattern = re2.compile(pattern)
        # A line with one number may be a total; a line with as many numbers as a row is a row.
        self._like_a_row = max(2, numbers)
        self._locale = locale
        self._assembly = assembly
        self._apart = apart
        self._unread = unread
        self._fields = fields

    def read(self, page: int, body: list[Line], running: Mapping[int, int]) -> set[int]:
        """Read a page's rows. Returns the numbers of the lines that were used."""
        used = set()
        unread = self._unread
        unread.begin_page()
        for number, line in enumerate(body):
            found = self._pattern.search(line.text)
            if self._apart.skips(line) or self._apart.takes_note(line, page):
                pass
            elif found is not None:
                unread.goes_on(len(self._assembly.rows))
                cells = {
                    column: [Piece(page, cut(line.words, *found.span(group)))]
                    for column, group in found.re.groupindex.items()
                    if found.group(group)
                }
                self._assembly.add(RawRow(cells))
            else:
                numbers = sum(self._is_number(word.text) for word in line.words)
                if number not in running and not self._fields.has(line, numbers):
                    like_a_row = numbers >= self._like_a_row
                    unread.add(line, page, len(self._assembly.rows), like_a_row=like_a_row)
                continue
            used.add(number)
            unread.understood(line)
        return used

    def _is_number(self, text: str) -> bool:
        try:
            return read(text, "decimal", self._locale) is not None
        except Unreadable:
            return False
