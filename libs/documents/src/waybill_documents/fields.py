"""Header fields: finds the text that a field's rule describes.

Each page is searched once, in order. A search keeps the best candidate so far and nothing else of the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import re2

from waybill_documents.currencies import MINUS
from waybill_documents.field_scope import FieldScope
from waybill_documents.geometry import Place, Word, around, cut, part
from waybill_documents.labels import LabelPosition, has_colon, is_minus, label_positions
from waybill_documents.lines_below import MOST_WORDS, lines_below
from waybill_documents.locales import LocaleRules
from waybill_documents.mapping.model import FieldRule
from waybill_documents.messages import DocumentMessage
from waybill_documents.paragraphs import Paragraph, paragraphs
from waybill_documents.text_lines import Line, Lines, fold, segments
from waybill_documents.value_text import Unreadable, read
from waybill_documents.values import Scalar

_MARKS = frozenset(":;=-–.")


@dataclass(frozen=True, slots=True)
class Found:
    """A text that a rule found, and its place."""

    raw: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Misread:
    """A printed text that is not a value of the field's type, and why not."""

    found: Found
    why: DocumentMessage
    in_longer: bool


@dataclass(frozen=True, slots=True)
class FieldResult:
    """The result of a search after all pages."""

    found: Found | None
    value: Scalar
    how: str
    """`label`, `pattern` or `area`"""
    in_longer: bool = False
    """Whether the label of the value is probably part of a longer label."""
    ambiguous: bool = False
    """Whether the rule also found a different value elsewhere."""
    unreadable: Misread | None = None
    unmatched: Found | None = None
    """A text beside the label that does not match the field's pattern."""
    too_short: bool = False
    """Whether there was something beside the label, but not in the lines that the rule asks for."""
    label: Place | None = None
    """The place of the label, even if there is no value beside it."""


class FieldSearch:
    """Searches for one field, page by page."""

    def __init__(self, name: str, rule: FieldRule, locale: LocaleRules, labels: frozenset[str]) -> None:
        self.name = name
        self.rule = rule
        self._locale = locale
        self._labels = tuple(fold(label) for label in rule.label or ())
        self._others = labels
        self._longer = tuple(other for other in labels if any(label in other for label in self._labels))
        self._until = tuple(fold(phrase) for phrase in rule.until)
        self._scope = FieldScope(rule)
        self._pattern = re2.compile(rule.pattern) if rule.pattern else None
        self._first, self._last = _range(rule.lines)
        self._single = self._first == self._last == 1
        how = "label" if rule.label else "pattern" if rule.pattern else "area"
        self.result = FieldResult(None, None, how)

    def look(self, lines: Lines, last_page: bool) -> None:
        """Search one page."""
        rule = self.rule
        if rule.constant is not None or (rule.page == "first" and lines.page.number > 1):
            return
        if rule.page == "last" and not last_page:
            return
        if rule.pick == "first" and self.result.ambiguous and not self.result.in_longer:
            return  # nothing further can change the outcome
        narrowed = self._scope.of(lines)
        if narrowed is None:
            return
        if not self._labels:
            for found in self._without_label(narrowed):
                self._consider(found, in_longer=False)
            return
        for position, words in self._beside_labels(narrowed):
            for found in self._picked(narrowed, words):
                self._consider(found, in_longer=position.in_longer)

    def _consider(self, found: Found, *, in_longer: bool) -> None:
        result = self.result
        try:
            value = read(found.raw, self.rule.type, self._locale)
        except Unreadable as error:
            known = result.unreadable
            if (
                known is None
                or (known.in_longer and not in_longer)
                or (self._is_value_like(found.raw) and not self._is_value_like(known.found.raw))
            ):
                self.result = replace(result, unreadable=Misread(found, error.says, in_longer))
            return
        if value is None or value == "":
            return
        if result.found is None or (result.in_longer and not in_longer):
            self.result = replace(result, found=found, value=value, in_longer=in_longer, ambiguous=False)
            return
        if in_longer and not result.in_longer:
            return
        differs = value != result.value
        if self.rule.pick == "last":
            self.result = replace(result, found=found, value=value, ambiguous=differs or result.ambiguous)
        elif differs:
            self.result = replace(result, ambiguous=True)

    def _is_value_like(self, raw: str) -> bool:
        """Whether a text is meant as a value of the field's type. A label may also appear where it labels nothing."""
        if self.rule.type == "text" or not any(sign.isdigit() for sign in raw):
            return False
        if self.rule.type in ("date", "digits"):
            return True
        sign = fold(raw.split(" ", 1)[0]).rstrip("0123456789")
        return not raw[0].isalpha() or sign in {fold(each) for each in self._locale.currencies}

    @property
    def misread(self) -> Misread | None:
        """A printed text that is not a valid value, and why. It must not be replaced by a default or ignored."""
        unreadable = self.result.unreadable
        if unreadable is None or self.result.found is not None:
            return None
        if self.rule.required:
            return unreadable
        return unreadable if self._is_value_like(unreadable.found.raw) and not unreadable.in_longer else None

    def _without_label(self, lines: Lines) -> Iterator[Found]:
        if self.rule.wraps:
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

    def _beside_labels(self, lines: Lines) -> Iterator[tuple[LabelPosition, list[list[Word]]]]:
        """The words beside or below each place of a label, the most certain label first if the first one counts."""
        direction = self.rule.direction
        positions = label_positions(lines, self._labels, self._longer, below=direction == "below")
        if self.rule.pick == "first":
            positions.sort(key=lambda position: position.doubt)
        for position in positions:
            if self.result.label is None:
                self.result = replace(self.result, label=Place(lines.page.number, position.box))
            line = lines.lines[position.line]
            right = self._right_of(line, position.end) if direction != "below" else []
            if direction == "right":
                rows = self._onward(lines, line.words[position.end - 1]) if self.rule.wraps else [right]
            elif direction == "below":
                rows = lines_below(lines, position.line, position.box, self._until, self._last)
            else:
                reach = around([*right, *line.words[position.start : position.end]]) if right else position.box
                under = lines_below(lines, position.line, position.box, self._until, self._last, reach=reach)
                rows = [*([right] if right else []), *under]
            chosen = rows if direction == "right" else self._chosen(rows)
            if any(rows) and not chosen:
                self.result = replace(self.result, too_short=True)
            if self._pattern is not None and self.result.unmatched is None and any(chosen):
                self._note_unmatched(lines, chosen)
            yield position, chosen

    def _note_unmatched(self, lines: Lines, rows: list[list[Word]]) -> None:
        """Remember a text beside the label that the pattern does not accept, to say so if nothing else is found."""
        if not any(self._picked(lines, rows)):
            words = next(row for row in rows if row)
            place = Place(lines.page.number, around(words))
            self.result = replace(self.result, unmatched=Found(" ".join(word.text for word in words), (place,)))

    def _right_of(self, line: Line, start: int) -> list[Word]:
        """The words after a label on its line, up to a wide gap or the next label."""
        numeric = self.rule.type in ("decimal", "integer")
        minus: Word | None = None
        while start < len(line.words) and all(mark in _MARKS for mark in line.words[start].text):
            minus = line.words[start] if numeric and is_minus(line, start) else None
            start += 1
        rest = line.words[start : start + MOST_WORDS]
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

    def _chosen(self, rows: list[list[Word]]) -> list[list[Word]]:
        return rows[self._first - 1 : self._last]


def _range(lines: str) -> tuple[int, int | None]:
    first, dash, last = lines.partition("-")
    return int(first), (int(last) if last else None) if dash else int(first)
