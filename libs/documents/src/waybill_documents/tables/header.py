"""Finds the header of a table by its words, wherever the columns are and however many lines it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from waybill_documents.geometry import Box, Word, around
from waybill_documents.mapping.model import TableRule
from waybill_documents.text_lines import Line, Lines, PhrasePosition, fold, segments

_ENOUGH = 0.6
"""The fraction of the columns that a line must have to count as the header."""
_APART = 1.0
"""Header words this many heights away from all known columns are the header of an unnamed column."""
_MOST_STRANGERS = 40
"""The most unnamed columns; as many as a table can have named ones."""
_MOST_PARTS = 60
"""The most candidate words for one phrase. Only hostile documents have more."""
_STACKED = 1.6
"""The lines of one header are at most this many heights apart, from middle to middle."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header on one page: a box for each column found, and its lower end."""

    boxes: dict[str, Box]
    first_line: int
    last_line: int
    strangers: frozenset[str] = frozenset()
    """The boxes of columns that the mapping does not have. Words under them belong to no other column."""

    def with_boxes(self, boxes: dict[str, Box]) -> Header:
        """The same header with the boxes of further columns."""
        return replace(self, boxes={**self.boxes, **boxes}) if boxes else self


@dataclass(frozen=True, slots=True)
class HeaderWords:
    """The phrases to look for, folded once for all pages."""

    phrases: dict[str, tuple[str, ...]]
    must: frozenset[str]

    @classmethod
    def of(cls, rule: TableRule) -> HeaderWords:
        """The header words of a table's columns."""
        phrases = {
            name: tuple(fold(phrase) for phrase in column.header)
            for name, column in rule.columns.items()
            if column.header is not None
        }
        return cls(phrases, frozenset(name for name in phrases if not rule.columns[name].optional))


@dataclass(frozen=True, slots=True)
class NearHeader:
    """The line most like a header that a page without one has. It tells the author of a mapping what is missing."""

    found: frozenset[str]
    box: Box


def near_header(lines: Lines, words: HeaderWords) -> NearHeader | None:
    """The line with the most columns of the header; None if no line has at least two of them."""
    hits = _hits(lines, words)
    number = max(hits, key=lambda line: (len(hits[line]), -line), default=None)
    if number is None or len(hits[number]) < 2:
        return None
    return NearHeader(frozenset(hits[number]), around(lines.lines[number].words))


def find_header(lines: Lines, words: HeaderWords) -> Header | None:
    """The first header on the page, if there is one."""
    hits = _hits(lines, words)
    needed = max(1, round(_ENOUGH * len(words.must)))
    best: Header | None = None
    for number in sorted(hits):
        # Stacked headers have several lines: a word missing on this line may be on the one above or below.
        band = _band(lines, number)
        boxes, taken = _boxes(lines, band, hits, words)
        if len(boxes.keys() & words.must) < needed or not _belongs(lines, number, boxes):
            continue
        # A sentence above the table may have some of the words; the header has the most.
        if best is None or len(boxes) > len(best.boxes) - len(best.strangers):
            bottom = max(box[3] for box in boxes.values())
            last = max(index for index in band if lines.lines[index].top < bottom - 0.1)
            first = min(
                index for index in band if lines.lines[index].bottom > min(box[1] for box in boxes.values()) + 0.1
            )
            strangers = _strangers(lines, range(first, last + 1), taken, boxes)
            best = Header(boxes | strangers, first, last, frozenset(strangers))
            if len(boxes) == len(words.phrases):
                break
    return best


def _hits(lines: Lines, words: HeaderWords) -> dict[int, dict[str, PhrasePosition]]:
    """By line, where it has the words of which column."""
    hits: dict[int, dict[str, PhrasePosition]] = {}
    for name, phrases in words.phrases.items():
        for phrase in phrases:
            for span in lines.find(phrase):
                longest = hits.setdefault(span.line, {})
                if name not in longest or _rank(lines, longest[name]) < _rank(lines, span):
                    longest[name] = span
    return hits


def _strangers(lines: Lines, band: range, taken: set[tuple[int, int]], boxes: Mapping[str, Box]) -> dict[str, Box]:
    """Unnamed columns: header words far away from all known columns."""
    found: list[Box] = []
    for index in band:
        line = lines.lines[index]
        free = [word for position, word in enumerate(line.words) if (index, position) not in taken]
        for words in segments(free):
            left, _, right, _ = box = around(words)
            room = line.height * _APART
            if all(right + room < other[0] or left - room > other[2] for other in (*boxes.values(), *found)):
                found.append(box)
            if len(found) >= _MOST_STRANGERS:
                break
    return {f"#{number}": box for number, box in enumerate(found)}


def _rank(lines: Lines, span: PhrasePosition) -> tuple[int, float]:
    """Longer phrases are better, then words close together: `Harga` and `Satuan` may also be two columns."""
    words = lines.lines[span.line].words[span.start : span.end]
    return len(words), -max([right.left - left.right for left, right in pairwise(words)], default=0.0)


def _belongs(lines: Lines, number: int, boxes: Mapping[str, Box]) -> bool:
    """Whether the line itself is part of the header, not only its neighbours."""
    line = lines.lines[number]
    return any(box[1] < line.bottom and box[3] > line.top for box in boxes.values())


def _band(lines: Lines, number: int) -> list[int]:
    """The line and up to two below it that are close enough to be the same header, and one above."""
    band = [number]
    if _counts(lines.lines[number]):
        return band
    for step in (1, 2):
        below = number + step
        if (
            below < len(lines)
            and _close(lines.lines[below - 1], lines.lines[below])
            and not _counts(lines.lines[below])
        ):
            band.append(below)
        else:
            break
    if number > 0 and _close(lines.lines[number - 1], lines.lines[number]) and not _counts(lines.lines[number - 1]):
        band.insert(0, number - 1)
    return band


def _counts(line: Line) -> bool:
    """Whether the line has a number. Rows have numbers, headers do not."""
    return any(folded.isdecimal() for folded in line.folded)


def _close(upper: Line, lower: Line) -> bool:
    distance = (lower.top + lower.bottom - upper.top - upper.bottom) / 2
    return distance <= _STACKED * min(upper.height, lower.height)


def _boxes(
    lines: Lines, band: list[int], hits: dict[int, dict[str, PhrasePosition]], words: HeaderWords
) -> tuple[dict[str, Box], set[tuple[int, int]]]:
    """A box for each column found in the band, and the positions of its words.

    Longer phrases come first, so that `Jumlah` does not take the word of `Jumlah Harga`.
    """
    found: dict[str, Box] = {}
    taken: set[tuple[int, int]] = set()
    spans = [(name, span) for index in band for name, span in hits.get(index, {}).items()]
    for name, span in sorted(spans, key=lambda item: -_letters(lines, item[1])):
        positions = {(span.line, position) for position in range(span.start, span.end)}
        if name not in found and not positions & taken:
            found[name] = lines.box(span)
            taken |= positions
    missing = {name: phrases for name, phrases in words.phrases.items() if name not in found}
    if missing:
        free = [
            word
            for index in band
            for position, word in enumerate(lines.lines[index].words)
            if (index, position) not in taken
        ]
        for name, stack in _stacked(free, missing).items():
            found[name] = around(stack)
            taken |= {
                (index, position)
                for index in band
                for position, word in enumerate(lines.lines[index].words)
                if word in stack
            }
    return found, taken


def _letters(lines: Lines, span: PhrasePosition) -> int:
    return sum(len(part) for part in lines.lines[span.line].folded[span.start : span.end])


def _stacked(words: list[Word], missing: Mapping[str, tuple[str, ...]]) -> dict[str, list[Word]]:
    """Headers with words one above the other."""
    found: dict[str, list[Word]] = {}
    for name, phrases in missing.items():
        for phrase in phrases:
            parts = [word for word in words if (folded := fold(word.text)) and folded in phrase][:_MOST_PARTS]
            for word in parts:
                stack = _stack_from(word, parts, phrase)
                if stack:
                    found[name] = stack
                    break
            if name in found:
                break
    return found


def _stack_from(first: Word, words: list[Word], phrase: str) -> list[Word]:
    """The words from this one, to the right and then downwards, that spell the phrase; empty if they do not."""
    read = fold(first.text)
    if not read or not phrase.startswith(read):
        return []
    stack = [first]
    while read != phrase:
        left, _, right, bottom = around(stack)
        tall = first.bottom - first.top
        beside = [
            word
            for word in words
            if word not in stack
            and abs(word.top - stack[-1].top) < tall / 2
            and 0 <= word.left - stack[-1].right < tall
        ]
        below = [
            word
            for word in words
            if word not in stack
            and -tall / 2 <= word.top - bottom < tall
            and word.left < right + tall
            and word.right > left - tall
        ]
        onward = next(
            (
                word
                for word in (*sorted(beside, key=lambda word: word.left), *sorted(below, key=lambda word: word.left))
                if phrase.startswith(read + fold(word.text)) and fold(word.text)
            ),
            None,
        )
        if onward is None:
            return []
        stack.append(onward)
        read += fold(onward.text)
    return stack
