"""Joins amounts that are printed as several words: `Rp` or `-` and its number, and the groups of `1 234 567,89`.

Spreadsheets print the sign at the left edge of a cell and the amount at its right edge. If they were not joined, the
sign would look like the end of the previous column.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache

from waybill_documents.geometry import Box, Word
from waybill_documents.locales import LocaleRules
from waybill_documents.text_lines import Line, fold, line_of

_GROUP = re.compile(r"[0-9]{3}(?![0-9])")
_HEAD = re.compile(r"(?:^|[^0-9])[0-9]{1,3}(?: [0-9]{3})*$")
_NUMBER_STARTS = frozenset("0123456789-(+−.,")
MINUS = frozenset("-−–")
_BESIDE = 0.7
"""A minus belongs to a number at most this many heights to its right. Further away, it marks an empty cell."""
_SAME_EDGE = 0.25
"""A text is at the left edge of its column when the header begins at most this many heights from it."""
_SPACE = 0.4
"""A gap of at most this many heights between two words is a space. Cells are further apart."""


@dataclass(frozen=True, slots=True)
class Headers:
    """The boxes of the table header above a line."""

    boxes: tuple[Box, ...] = ()
    texts: frozenset[Box] = frozenset()
    """Those of columns without amounts, such as codes. A sign before their numbers is another column's text."""


_NO_HEADERS = Headers()


class Amounts:
    """How the amounts of a document are printed."""

    def __init__(self, locale: LocaleRules) -> None:
        self.signs = frozenset(fold(sign) for sign in locale.currencies)
        self._spaced = " " in locale.groups
        self._telling = _with_minus(self.signs) | MINUS

    def joined(self, line: Line, headers: Headers = _NO_HEADERS) -> Line:
        """The line with each amount as one word."""
        if not self._spaced and self._telling.isdisjoint(line.folded):
            return line
        grouped = join_groups(line) if self._spaced else line
        return join_currencies(join_minus(grouped, self.signs, headers.boxes), self.signs, headers)


def join_minus(line: Line, signs: AbstractSet[str], headers: Collection[Box] = ()) -> Line:
    """The line with each minus joined to the amount after it, which would otherwise lose its sign."""
    if MINUS.isdisjoint(line.folded):
        return line
    words: list[Word] = []
    for word in line.words:
        minus = words[-1] if words and words[-1].text in MINUS else None
        before = words[-2] if len(words) > 1 else None
        if minus is not None and _is_minus_of(minus, word, before, signs, headers):
            words[-1] = _merged(minus, word)
        else:
            words.append(word)
    return line if len(words) == len(line.words) else line_of(words)


def _is_minus_of(
    minus: Word, word: Word, before: Word | None, signs: AbstractSet[str], headers: Collection[Box]
) -> bool:
    """Whether a dash is the minus of the next number, and not a dash in a text or the mark of an empty cell."""
    if not is_beside(minus, word):
        return False
    after_sign = before is not None and fold(before.text) in signs
    if word.text[0].isdigit():
        return after_sign or before is None or not _flows(before, minus)
    if fold(word.text) not in signs or after_sign or (before is not None and _flows(before, minus)):
        return False
    return not any(left < minus.right and minus.left < right <= word.left for left, _, right, _ in headers)


def is_beside(minus: Word, word: Word) -> bool:
    """Whether a dash is close enough to the next word to be its minus."""
    return word.left - minus.right <= _BESIDE * (word.bottom - word.top)


def join_groups(line: Line) -> Line:
    """The line with the groups of a number as one word."""
    words: list[Word] = []
    for word in line.words:
        if words and _goes_on(words[-1], word):
            words[-1] = _merged(words[-1], word)
        else:
            words.append(word)
    return line if len(words) == len(line.words) else line_of(words)


def _goes_on(before: Word, word: Word) -> bool:
    """Whether a word is the next three digits of the number before it."""
    if word.left - before.right > (word.bottom - word.top) / 2 or not _GROUP.match(word.text):
        return False
    return _HEAD.search(before.text) is not None


def _merged(before: Word, word: Word) -> Word:
    return Word(
        f"{before.text} {word.text}",
        before.left,
        min(before.top, word.top),
        word.right,
        max(before.bottom, word.bottom),
    )


def join_currencies(line: Line, signs: AbstractSet[str], headers: Headers = _NO_HEADERS) -> Line:
    """The line with each sign and the number that follows it as one word. `signs` are folded."""
    if _with_minus(signs).isdisjoint(line.folded):
        return line
    words: list[Word] = []
    waiting: Word | None = None
    for word, following in zip(line.words, (*line.words[1:], None), strict=True):
        if waiting is not None:
            if _starts_number(word) and not _is_columns_away(waiting, word, headers):
                words.append(_merged(waiting, word))
                waiting = None
                continue
            words.append(waiting)
            waiting = None
        if _ends_with_sign(word, signs) and not (words and _flows(words[-1], word, following)):
            waiting = word
        else:
            words.append(word)
    if waiting is not None:
        words.append(waiting)
    return line_of(words)


@cache
def _with_minus(signs: AbstractSet[str]) -> AbstractSet[str]:
    """The folded signs, and those with a minus before them."""
    return signs | {minus + sign for minus in MINUS for sign in signs}


def _starts_number(word: Word) -> bool:
    return word.text[0] in _NUMBER_STARTS or (word.text[0] in MINUS and word.text[1:2] == " ")


def _ends_with_sign(word: Word, signs: AbstractSet[str]) -> bool:
    """Whether the text is a currency sign, with or without a minus before it."""
    return fold(word.text[2:] if word.text[0] in MINUS and word.text[1:2] == " " else word.text) in signs


def _is_columns_away(sign: Word, number: Word, headers: Headers) -> bool:
    """Whether the sign is the end of a description and only looks like the beginning of the next column's number."""
    between = sum(sign.right <= left and right <= number.left for left, _, right, _ in headers.boxes)
    at_number = [box for box in headers.boxes if box[0] < number.right and number.left < box[2]]
    if between + bool(at_number) > 1:
        return True
    nearest = at_number or sorted(headers.boxes, key=lambda box: max(box[0] - number.right, number.left - box[2]))[:1]
    if nearest and headers.texts.issuperset(nearest) and not _is_under(sign, nearest):
        return True
    # Each has its own header: a description that consists of `Rp`, and the number of the next column.
    near = _SAME_EDGE * (sign.bottom - sign.top)
    at_sign = any(abs(left - sign.left) <= near and right <= number.left for left, _, right, _ in headers.boxes)
    return at_sign and any(box[0] >= sign.right for box in at_number)


def _is_under(word: Word, boxes: Collection[Box]) -> bool:
    return any(left < word.right and word.left < right for left, _, right, _ in boxes)


def _flows(before: Word, word: Word, following: Word | None = None) -> bool:
    """Whether a word follows another one as in a sentence.

    `harga Rp 12.500 per meter` is text, even if it wraps after `Rp`. After a number or a bracket, which usually end the
    cell before, a sign is text only if it is a space away and the next word is not.
    """
    gap = word.left - before.right
    if not fold(before.text):
        return False
    if before.text[-1].isdigit() or before.text[-1] in "-)%":
        high = word.bottom - word.top
        return following is not None and gap <= _SPACE * high and following.left - word.right > 2 * _SPACE * high
    letter = (before.right - before.left) / len(before.text)
    return gap <= 1.05 * letter
