"""Reads words with boxes from the pages of a PDF.

Asking pdfium for a letter is most of the cost of reading, so we ask only for the first and the last letter of a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from math import inf

import pypdfium2

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Box, Page, Word
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.form_fields import TICKED, fill_in
from waybill_documents.pdf.letters import Letters, box_of, object_of
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.torn_words import HYPHENS, PRINTED, holds, is_torn, letter_by_letter, strays
from waybill_documents.pdf.visibility import Visibility

_LETTERS = r"[^\s\x00-\x01\x03-\x1f\x7f]+"
_WORD = re.compile(rf"{_LETTERS}(?:(?<=\d)[\xa0\u2009\u202f](?=\d{{3}}(?!\d)){_LETTERS})*")
"""No white space and no control characters, except the non-breaking spaces in `1 234 567`."""
_SAMPLES = 40
"""How many characters are sampled for the page's direction. A page is turned if most of its text is."""
_ASKEW = 10
"""The most degrees that a word may lean and still be part of a line."""

Transform = Callable[[float, float], tuple[float, float]]
Printed = tuple[str, float, float, float, float]
"""A word in PDF coordinates, which grow upwards: left, top, right and bottom, with `top` greater than `bottom`."""


def pages(document: pypdfium2.PdfDocument, limits: PdfLimits) -> Iterator[Page]:
    """The pages in order, one at a time. Only one page is in memory."""
    words = 0
    for index in range(len(document)):
        page = _read(document, index, limits)
        words += len(page.words)
        if words > limits.words:
            raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("pdf.too_many_words", most=limits.words))
        yield page


def turn_of(page: pypdfium2.PdfPage, letters: Letters) -> int:
    """The degrees, clockwise, by which the page must be turned for its text to be upright."""
    count = letters.count
    directions = Counter(
        round(direction / 90) % 4 * 90
        for index in range(0, count, max(1, count // _SAMPLES))
        if (direction := letters.direction(index)) is not None
    )
    return directions.most_common(1)[0][0] if directions else int(page.get_rotation())


def _read(document: pypdfium2.PdfDocument, index: int, limits: PdfLimits) -> Page:
    try:
        page = document[index]
        left, bottom, right, top = page.get_bbox()
        ticked = fill_in(document, page)
        if ticked is not None:
            page.close()
            page = document[index]
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError as error:
        raise DocumentRejected(FaultCode.UNREADABLE, DocumentMessage("pdf.page_damaged", page=index + 1)) from error
    try:
        letters = Letters(text_page.raw)
        turn = turn_of(page, letters)
        visibility = Visibility(page.raw, letters)
        words, askew = _WordReading(letters, turn, limits.words_on_page, visibility).read()
        recognised = not words and not askew and visibility.has_invisible
        if recognised:
            words, askew = _WordReading(letters, turn, limits.words_on_page, None).read()
        if ticked:
            words = _with_ticks(words, ticked)
        wide, high = right - left, top - bottom
        if turn in (90, 270):
            wide, high = high, wide
        box = (left, bottom, right, top)
        seen, leaning = (tuple(_upright(each, turn, box, wide, high)) for each in (words, askew))
        return Page(index + 1, round(wide, 2), round(high, 2), turn, seen, leaning, recognised)
    finally:
        text_page.close()
        page.close()


def _with_ticks(words: list[Printed], ticked: list[Box]) -> list[Printed]:
    """The words with one for each ticked box, instead of whatever sign is drawn in it."""
    kept = [
        word
        for word in words
        if not any(
            left <= (word[1] + word[3]) / 2 <= right and bottom <= (word[2] + word[4]) / 2 <= top
            for left, top, right, bottom in ticked
        )
    ]
    return [*kept, *((TICKED, *box) for box in ticked)]


class _WordReading:
    """Reads the words of one page, in PDF coordinates. With `visibility`, invisible words are left out."""

    def __init__(self, letters: Letters, turn: int, limit: int, visibility: Visibility | None) -> None:
        self._letters = letters
        self._turn = turn
        self._sideways = turn in (90, 270)
        self._limit = limit
        self._visibility = visibility
        self._words: list[Printed] = []
        self._askew: list[Printed] = []

    def read(self) -> tuple[list[Printed], list[Printed]]:
        """The words in the page's direction, and the others.

        Nearly all words are visible, level and in one piece. They are read in this loop, without a call of Python.
        """
        letters, visibility, level = self._letters, self._visibility, not self._sideways
        page, into, corners = letters.page, letters.into, letters.corners
        plain: AbstractSet[int | None] = visibility.plain if visibility is not None else set()
        words = self._words
        line_top = line_bottom = 0.0
        matches = _WORD.finditer(letters.text())
        for found in islice(matches, self._limit):
            start, end = found.span()
            text = printed = found[0]
            if not text.isascii():
                printed = unicodedata.normalize("NFC", text.translate(PRINTED))
                if not printed:
                    continue
            if not box_of(page, start, into):
                continue
            left, top, right, bottom = corners
            last = end - 1
            if visibility is not None:
                drawn, ends = object_of(page, start), None
                if last > start and printed[-1].isdigit():
                    ends = object_of(page, last)
                if (
                    not (drawn in plain or visibility.is_plain(drawn))
                    or not (ends in plain or visibility.is_plain(ends))
                ) and not self._is_seen(visibility, text, start, (left + right) / 2, (bottom + top) / 2):
                    continue
            if last == start:
                if level and bottom == line_bottom and top == line_top:  # beside the word before it
                    words.append((printed, left, top, right, bottom))
                    continue
            elif level and box_of(page, last, into):
                _, last_top, far, _ = corners
                if (
                    last_top == top
                    and 0 <= far - left <= (top - bottom) * (end - start)
                    and (("-" not in printed and "\x02" not in printed) or holds(letters, text, start))
                ):
                    words.append((printed, left, top, far, bottom))
                    line_bottom, line_top = bottom, top
                    continue
            self._add(printed, text, start, (left, top, right, bottom))
        if next(matches, None) is not None or len(words) + len(self._askew) > self._limit:
            raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("pdf.page_too_full", most=self._limit))
        return words, self._askew

    def _is_seen(self, visibility: Visibility, text: str, start: int, x: float, y: float) -> bool:
        """Whether a word is visible. If only a part of it is, the part is added."""
        hidden, last = visibility.hides(start, x, y), start + len(text) - 1
        if last > start and visibility.hides(last, x, y) is not hidden:
            self._words += letter_by_letter(self._letters, text, start, self._sideways, visibility)
            return False
        return not hidden

    def _add(self, printed: str, text: str, start: int, first: tuple[float, float, float, float]) -> None:
        """Add a word that may be torn, or lean."""
        letters, sideways = self._letters, self._sideways
        left, top, right, bottom = first
        is_level = False  # until the last letter turns out to be on the line of the first
        end = start + len(text)
        last = letters.box(end - 1) if len(text) > 1 else None
        if last is not None:
            is_level = last[0] == left if sideways else last[1] == top
            torn = not HYPHENS.isdisjoint(printed) or is_torn(first, last, sideways, len(text))
            torn = torn or (sideways and is_level and strays(letters, start, end, left, right))
            if torn and (is_level or not self._leans(start)):
                self._words += letter_by_letter(letters, text, start, sideways)
                return
            left, right = min(left, last[0]), max(right, last[2])
            top, bottom = max(top, last[1]), min(bottom, last[3])
        to = self._words if is_level or not self._leans(start) else self._askew
        to.append((printed, left, top, right, bottom))

    def _leans(self, index: int) -> bool:
        """Whether a letter's line has another direction than the page's text."""
        direction = self._letters.direction(index)
        return direction is not None and abs((direction - self._turn + 180) % 360 - 180) > _ASKEW


def _upright(
    words: list[Printed], turn: int, page: tuple[float, float, float, float], wide: float, high: float
) -> Iterator[Word]:
    """The words on the page in coordinates from the top left corner of the turned page."""
    left, bottom, right, top = page
    if not turn:
        yield from _unturned(words, left, top, wide, high)
        return
    moved: dict[int, Transform] = {
        90: lambda x, y: (y - bottom, x - left),
        180: lambda x, y: (right - x, y - bottom),
        270: lambda x, y: (top - y, right - x),
    }
    move = moved[turn]
    for text, word_left, word_top, word_right, word_bottom in words:
        x1, y1 = move(word_left, word_top)
        x2, y2 = move(word_right, word_bottom)
        if x1 > x2:
            x1, x2 = x2, x1
        if y1 > y2:
            y1, y2 = y2, y1
        if x2 > 0 and x1 < wide and y2 > 0 and y1 < high:
            yield Word(text, _rounded(x1), _rounded(y1), _rounded(x2), _rounded(y2))


def _unturned(words: list[Printed], left: float, top: float, wide: float, high: float) -> list[Word]:
    """The same for a page that is not turned, as nearly all are: without calls, and with one height for each line."""
    found: list[Word] = []
    new = tuple.__new__  # twice as fast as calling `Word`
    line_top = line_bottom = upper = lower = inf
    is_on_page = False
    for text, word_left, word_top, word_right, word_bottom in words:
        if word_top != line_top or word_bottom != line_bottom:
            line_top, line_bottom = word_top, word_bottom
            y1, y2 = top - word_top, top - word_bottom
            upper, lower = (y1 * 100 + 0.5) // 1 / 100, (y2 * 100 + 0.5) // 1 / 100
            is_on_page = y2 > 0 and y1 < high
        x1, x2 = word_left - left, word_right - left
        if is_on_page and x2 > 0 and x1 < wide:
            # As `_rounded` does.
            found.append(new(Word, (text, (x1 * 100 + 0.5) // 1 / 100, upper, (x2 * 100 + 0.5) // 1 / 100, lower)))
    return found


def _rounded(points: float) -> float:
    """Two decimals. This takes half the time of `round`."""
    return (points * 100 + 0.5) // 1 / 100
