"""Header fields: finds the text that a field's rule describes.

Each page is searched once, in order. A search keeps the best candidate so far and nothing else of the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import re2

from waybill_documents.currencies import MINUS
from waybill_documents.field_scope import FieldScope
from waybill_documents.geometry import Box, Place, Word, around, cut, part
from waybill_documents.labels import has_colon, is_minus
from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import FieldRule
from waybill_documents.messages import DocumentMessage
from waybill_documents.paragraphs import Paragraph, paragraphs
from waybill_documents.text_lines import Line, Lines, fold, line_of, segments
from waybill_documents.value_text import Unreadable, read
from waybill_documents.values import Scalar

_NEXT_LINE = 2.5
"""Lines under a label belong to it while the gap between them is at most this many heights."""
_INDENT = 1.5
"""Such lines may begin this many heights to the left of the label."""
_MOST_LABELS = 50
"""Occurrences of one label that are examined on a page. More of them occur only on hostile pages."""
_MOST_WORDS = 200
"""The most words of a value on one line."""
_MOST_LINES = 100
"""The most lines of a value."""
_MARKS = frozenset(":;=-–.")


@dataclass(frozen=True, slots=True)
class Found:
    """A text that a rule found, and its place."""

    raw: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class FieldResult:
    """The result of a search after all pages."""

    found: Found | None
    value: Scalar
    how: str
    """`label`, `pattern` or `area`"""
    ambiguous: bool
    """Whether the rule also found a different value elsewhere."""
    unreadable: tuple[Found, DocumentMessage] | None
    """A text that is not a value of the field's type, and why not."""
    label: Place | None
    """The place of the label, even if there is no value beside it."""


class FieldSearch:
    """Searches for one field, page by page."""

    def __init__(self, name: str, rule: FieldRule, locale: LocaleRules, labels: frozenset[str]) -> None:
        self.name = name
        self.rule = rule
        self._locale = locale
        self._labels = tuple(fold(label) for label in rule.label or ())
        self._others = labels
        self._until = tuple(fold(phrase) for phrase in rule.until)
        self._scope = FieldScope(rule)
        self._pattern = re2.compile(rule.pattern) if rule.pattern else None
        self._first, self._last = _range(rule.lines)
        self._single = self._first == self._last == 1
        how = "label" if rule.label else "pattern" if rule.pattern else "area"
        self.result = FieldResult(None, None, how, False, None, None)

    def look(self, lines: Lines, last_page: bool) -> None:
        """Search one page."""
        rule = self.rule
        if rule.constant is not None or (rule.page == "first" and lines.page.number > 1):
            return
        if rule.page == "last" and not last_page:
            return
        if rule.pick == "first" and self.result.found is not None and self.result.ambiguous:
            return  # nothing further can change the outcome
        narrowed = self._scope.of(lines)
        if narrowed is None:
            return
        for found in self._candidates(narrowed):
            self._consider(found)

    def _consider(self, found: Found) -> None:
        try:
            value = read(found.raw, self.rule.type, self._locale)
        except Unreadable as error:
            known = self.result.unreadable
            if known is None or (self._is_value_like(found.raw) and not self._is_value_like(known[0].raw)):
                self.result = replace(self.result, unreadable=(found, error.says))
            return
        if value is None or value == "":
            return
        if self.result.found is None:
            self.result = replace(self.result, found=found, value=value)
            return
        differs = value != self.result.value
        if self.rule.pick == "last":
            doubt = differs or self.result.ambiguous
            self.result = replace(self.result, found=found, value=value, ambiguous=doubt)
        elif differs:
            self.result = replace(self.result, ambiguous=True)

    def _is_value_like(self, raw: str) -> bool:
        """Whether a text is meant as a value of the field's type. A label may also appear where it labels nothing."""
        if self.rule.type == "text" or not any(sign.isdigit() for sign in raw):
            return False
        if self.rule.type in ("date", "digits"):
            return True
        sign = fold(raw.split(" ", 1)[0]).rstrip("0123456789")
        return not raw[0].isalpha() or sign in {fold(each) for each in self._locale.currencies}

    @property
    def misread(self) -> tuple[Found, DocumentMessage] | None:
        """A printed text that is not a valid value, and why. It must not be replaced by a default or ignored."""
        unreadable = self.result.unreadable
        if unreadable is None or self.result.found is not None:
            return None
        return unreadable if self.rule.required or self._is_value_like(unreadable[0].raw) else None

    def _candidates(self, lines: Lines) -> Iterator[Found]:
        if self._labels:
            for words in self._beside_labels(lines):
                yield from self._picked(lines, words)
        elif self.rule.wraps:
            for paragraph in paragraphs(lines, self.rule.join):
                yield from self._across(lines, paragraph)
        elif self._pattern is not None:
            for line in lines:
                yield from self._picked(lines, [line.words])
        else:
            yield from self._picked(lines, self._chosen([line.words for line in lines]))

    def _picked(self, lines: Lines, rows: list[list[Word]]) -> Iterator[Found]:
        """The text of these lines, or what the pattern picks from it."""
        if self._pattern is None:
            rows = [row for row in rows if row]
            if rows:
                raw = self.rule.join.join(" ".join(word.text for word in row) for row in rows)
                yield Found(raw, (Place(lines.page.number, around([word for row in rows for word in row])),))
            return
        if self.rule.wraps:
            yield from self._across(lines, Paragraph(rows, self.rule.join))
            return
        for row in rows:
            match = self._pattern.search(" ".join(word.text for word in row))
            if match is not None:
                group = 1 if self._pattern.groups else 0
                words = cut(row, *match.span(group)) if match.group(group) else []
                if words:
                    yield Found(match.group(group), (Place(lines.page.number, around(words)),))
                    return

    def _across(self, lines: Lines, paragraph: Paragraph) -> Iterator[Found]:
        """What the pattern picks from running text, with a place on each of its lines."""
        assert self._pattern is not None  # noqa: S101 - the schema asks for one
        match = self._pattern.search(paragraph.text)
        if match is not None:
            group = 1 if self._pattern.groups else 0
            parts = paragraph.parts(*match.span(group)) if match.group(group) else []
            if parts:
                places = tuple(Place(lines.page.number, around(part)) for part in parts)
                yield Found(match.group(group), places)

    def _onward(self, lines: Lines, label: Word) -> list[list[Word]]:
        """The text of a paragraph after the last word of a label in it."""
        for paragraph in paragraphs(lines, self.rule.join):
            for number, row in enumerate(paragraph.rows):
                if label in row:
                    rest = list(row)[list(row).index(label) + 1 :]
                    return [*([rest] if rest else []), *(list(each) for each in paragraph.rows[number + 1 :])]
        return []

    def _beside_labels(self, lines: Lines) -> Iterator[list[list[Word]]]:
        spans = [span for label in self._labels for span in islice(lines.find(label), _MOST_LABELS)]
        if self.rule.pick == "first":
            # A label with a colon is certainly a label; without one, it may be part of a name.
            spans.sort(key=lambda span: not has_colon(lines.lines[span.line], span.end))
        for span in spans:
            line = lines.lines[span.line]
            box = lines.box(span)
            if self.result.label is None:
                self.result = replace(self.result, label=Place(lines.page.number, box))
            right = self._right_of(line, span.end)
            if self.rule.direction == "right":
                yield self._onward(lines, line.words[span.end - 1]) if self.rule.wraps else [right]
            elif self.rule.direction == "below":
                yield self._chosen(self._under(lines, span.line, box))
            else:
                reach = around([*right, *line.words[span.start : span.end]]) if right else box
                yield self._chosen([*([right] if right else []), *self._under(lines, span.line, reach)])

    def _right_of(self, line: Line, start: int) -> list[Word]:
        """The words after a label on its line, up to a wide gap or the next label."""
        numeric = self.rule.type in ("decimal", "integer")
        minus: Word | None = None
        while start < len(line.words) and all(mark in _MARKS for mark in line.words[start].text):
            minus = line.words[start] if numeric and is_minus(line, start) else None
            start += 1
        rest = line.words[start : start + _MOST_WORDS]
        if not rest:
            return []
        first = segments(rest)[0]
        end = next((at for at in range(1, len(first)) if self._is_label(line, start + at)), len(first))
        value = first[:end]
        if value[0].text[0] == ":":
            value[0] = part(value[0], 1, len(value[0].text))
        if not numeric and value[0].text[0] in MINUS and value[0].text[1:2] == " ":
            value[0] = part(value[0], 2, len(value[0].text))  # in `Invoice - 12`, the number is 12 and not -12
        if minus is not None:
            value.insert(0, part(minus, len(minus.text) - 1, len(minus.text)))
        return value

    def _is_label(self, line: Line, start: int) -> bool:
        """Whether another label of the mapping, with a colon, begins at this word."""
        read = ""
        for position in range(start, min(start + 4, len(line.words))):
            read += line.folded[position]
            if read in self._others:
                return has_colon(line, position + 1)
        return False

    def _under(self, lines: Lines, number: int, box: Box) -> list[list[Word]]:
        """The parts of the following lines under a box, until the gap becomes wide or a phrase ends them."""
        taken: list[list[Word]] = []
        left, right, bottom = box[0], box[2], box[3]
        for below in range(number + 1, min(number + 1 + _MOST_LINES, len(lines))):
            line = lines.lines[below]
            if line.top - bottom > _NEXT_LINE * line.height:
                break
            if line.top < box[3] - line.height / 2:
                continue
            under = next(
                (
                    words
                    for words in lines.segments(below)
                    if words[0].left < right + line.height / 2
                    and words[-1].right > left - line.height / 2
                    and words[0].left > left - _INDENT * line.height
                ),
                None,
            )
            if under is None:
                continue
            part_of_line = line_of(under[:_MOST_WORDS])
            if part_of_line.begins_with(self._until):
                break
            taken.append(under[:_MOST_WORDS])
            bottom = line.bottom
            right = max(right, under[-1].right)
            if self._last is not None and len(taken) >= self._last:
                break
        return taken

    def _chosen(self, rows: list[list[Word]]) -> list[list[Word]]:
        return rows[self._first - 1 : self._last]


def _range(lines: str) -> tuple[int, int | None]:
    first, dash, last = lines.partition("-")
    return int(first), (int(last) if last else None) if dash else int(first)
