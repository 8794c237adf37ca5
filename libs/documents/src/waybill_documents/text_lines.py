"""Groups the words of a page into lines and finds phrases in them.

All later stages work on lines of words with boxes and never on a text dump. The white space of a dump differs between
PDF libraries, so the same rule would find different things.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from waybill_documents.geometry import Box, Page, Word, around

_SAME_LINE = 0.45
"""Words are on the same line when their middles differ by less than this fraction of the smaller height."""
_TALL = 3.0
"""Words this many times as high as most others are titles and stamps. They get their own lines."""
_WIDE_GAP = 1.8
"""A gap wider than this many heights separates two things that only happen to share a line."""
_SHORT = 40
"""Folded words of up to this many characters are remembered: most words of a document occur again."""
_DIGITS = re.compile("[0-9]")
_IGNORED = str.maketrans("", "", ".:;, \xa0\u2009\u202f")


def fold(text: str) -> str:
    """The text for comparing phrases: without case, spaces and the marks that labels end with."""
    return _remembered(text) if len(text) <= _SHORT else text.casefold().translate(_IGNORED)


@lru_cache(maxsize=4096)
def _remembered(text: str) -> str:
    return text.casefold().translate(_IGNORED)


@dataclass(slots=True)
class Line:
    """Words side by side, from left to right."""

    words: list[Word]
    top: float
    bottom: float
    folded: list[str]

    @property
    def height(self) -> float:
        """The height of its tallest word."""
        return self.bottom - self.top

    @property
    def text(self) -> str:
        """Its words with one space between them."""
        return " ".join([word.text for word in self.words])

    def begins_with(self, phrases: Iterable[str]) -> bool:
        """Whether its first words are one of these folded phrases."""
        first = self.folded[0]
        for phrase in phrases:  # noqa: SIM110 - a generator takes longer than the whole loop
            if phrase.startswith(first) and _matches(self.folded, 0, phrase):
                return True
        return False

    def has_part_with(self, phrases: Iterable[str]) -> bool:
        """Whether the line or a part of it begins with one of these folded phrases.

        A part begins after a wide gap. A phrase before the line's last number also counts as the beginning of a part.
        """
        for phrase in phrases:
            for position, folded in enumerate(self.folded):
                count = _matches(self.folded, position, phrase) if folded and phrase.startswith(folded) else 0
                if count and (
                    position == 0
                    or apart(self.words[position - 1], self.words[position])
                    or self._is_last_number(position + count)
                ):
                    return True
        return False

    def _is_last_number(self, position: int) -> bool:
        rest = (at for at in range(position, len(self.words)) if self.folded[at])
        only = next(rest, None)
        return only is not None and next(rest, None) is None and self.words[only].text[-1].isdigit()


class PhrasePosition(NamedTuple):
    """The position of a phrase: words `start` to `end` (excluded) of a line."""

    line: int
    start: int
    end: int


class Lines:
    """A page's lines from top to bottom, and a quick way to find phrases in them."""

    def __init__(self, page: Page, lines: list[Line]) -> None:
        self.page = page
        self.lines = lines
        self._index: dict[str, list[tuple[int, int]]] | None = None
        self._segments: dict[int, list[list[Word]]] = {}
        self._signatures: dict[int, tuple[int, str]] = {}

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def find(self, phrase: str) -> Iterator[PhrasePosition]:
        """The positions of the folded phrase, from top to bottom and left to right."""
        starts = self._starts()
        places = starts.get(phrase[:2], [])
        if len(phrase) > 1 and phrase[0] in starts:  # the first word may be a single letter, as in `A payer`
            places = sorted(places + starts[phrase[0]])
        for number, start in places:
            count = _matches(self.lines[number].folded, start, phrase)
            if count:
                yield PhrasePosition(number, start, start + count)

    def segments(self, number: int) -> list[list[Word]]:
        """The parts of a line between wide gaps. The result is cached."""
        if number not in self._segments:
            self._segments[number] = segments(self.lines[number].words)
        return self._segments[number]

    def signature(self, number: int) -> tuple[int, str]:
        """How far down a line is, and its text with all digits alike. It is cached for the pages on both sides."""
        if number not in self._signatures:
            line = self.lines[number]
            text = line.text
            if text.isascii():
                alike = _DIGITS.sub("#", text)
            else:
                alike = "".join(["#" if sign.isdigit() else sign for sign in text])
            self._signatures[number] = round(line.top), alike
        return self._signatures[number]

    def box(self, span: PhrasePosition) -> Box:
        """The box around a span's words."""
        return around(self.lines[span.line].words[span.start : span.end])

    def _starts(self) -> dict[str, list[tuple[int, int]]]:
        """Words by their first two letters, so that a phrase is compared only where it can begin."""
        if self._index is None:
            index = self._index = defaultdict(list)
            for number, line in enumerate(self.lines):
                for position, folded in enumerate(line.folded):
                    index[folded[:2]].append((number, position))
        return self._index


def _matches(folded: Sequence[str], start: int, phrase: str) -> int:
    """How many words from `start` make up the phrase, or 0. `No.Invoice` matches `No. Invoice`."""
    read = ""
    for count in range(start, len(folded)):
        read += folded[count]
        if read == phrase:
            return count - start + 1
        if not phrase.startswith(read):
            return 0
    return 0


def lines_of(page: Page) -> Lines:
    """The page's words as lines, whatever order the file has them in."""
    if not page.words:
        return Lines(page, [])
    heights = sorted([bottom - top for _, _, top, _, bottom in page.words])
    limit = _TALL * heights[len(heights) // 2]
    if heights[-1] <= limit:
        return Lines(page, _grouped(page.words))
    lines = _grouped([word for word in page.words if word.bottom - word.top <= limit])
    lines += _grouped([word for word in page.words if word.bottom - word.top > limit])
    lines.sort(key=lambda line: line.top + line.bottom)
    return Lines(page, lines)


def _grouped(words: Sequence[Word]) -> list[Line]:
    lines: list[Line] = []
    middles = [top + bottom for _, _, top, _, bottom in words]
    current: list[Word] = []
    middle = height = 0.0
    for at in sorted(range(len(words)), key=middles.__getitem__):
        word, own = words[at], middles[at]
        tall = word[4] - word[2]
        if current and own - middle <= 2 * _SAME_LINE * (tall if tall < height else height):
            current.append(word)
            # The line's middle follows its words, so that a slightly lower cell does not split it.
            middle += (own - middle) / len(current)
            if tall < height:
                height = tall
        else:
            if current:
                lines.append(line_of(current))
            current = [word]
            middle, height = own, tall
    if current:
        lines.append(line_of(current))
    return lines


_left = itemgetter(1)


def line_of(words: list[Word]) -> Line:
    """A line of these words, sorted from left to right."""
    words.sort(key=_left)
    texts, _, tops, _, bottoms = zip(*words, strict=True)
    return Line(
        words,
        min(tops),
        max(bottoms),
        [_remembered(text) if len(text) <= _SHORT else fold(text) for text in texts],
    )


def segments(words: Sequence[Word]) -> list[list[Word]]:
    """A line's words, split at wide gaps."""
    parts: list[list[Word]] = []
    for word in words:
        if parts and not apart(parts[-1][-1], word):
            parts[-1].append(word)
        else:
            parts.append([word])
    return parts


def apart(left: Word, right: Word) -> bool:
    """Whether the gap between two neighbours is wide."""
    return right.left - left.right > _WIDE_GAP * min(left.bottom - left.top, right.bottom - right.top)
