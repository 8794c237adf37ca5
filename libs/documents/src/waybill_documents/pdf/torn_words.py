"""Splits what pdfium took for one word. It joins letters that the file draws in sequence, even if they are far apart.

After a hyphen it nearly always joins, wherever the next letter is on the page.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from waybill_documents.geometry import Word
from waybill_documents.pdf.letters import Corners, Letters
from waybill_documents.pdf.visibility import Visibility

HYPHENS = frozenset("-\x02\ufffe\xad")
PRINTED: dict[int, str | None] = str.maketrans(
    {"\x02": "-", "\ufffe": "-", "\xad": "-"}
    | dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufeff")
    | {chr(code): unicodedata.normalize("NFKC", chr(code)) for code in (*range(0xFB00, 0xFB07), *range(0xFF01, 0xFF5F))}
)
"""Replaces pdfium's marks for a hyphen at the end of a line, removes invisible characters, and spells out ligatures and
full-width letters. It leaves `½` and `²` alone, which are part of product names."""
_SIZES = 2.2
"""The heights of letters in one word differ by less than this factor, including superscripts."""


def holds(letters: Letters, text: str, start: int) -> bool:
    """Whether the letter after each hyphen of a word is next to it."""
    for offset, letter in enumerate(text[:-1]):
        if letter in HYPHENS:
            hyphen, following = letters.box(start + offset), letters.box(start + offset + 1)
            if hyphen is None or following is None:
                return False
            _, top, right, bottom = hyphen
            if following[1] != top or abs(following[0] - right) >= (top - bottom) / 4:
                return False
    return True


def is_torn(first: Corners, last: Corners, sideways: bool, length: int) -> bool:
    """Whether a word's last letter is on another line than its first, too far away, or of another size."""
    left, top, right, bottom = first
    last_left, last_top, last_right, last_bottom = last
    if sideways:
        return (
            last_left > right
            or last_right < left
            or not 1 / _SIZES < (last_right - last_left) / ((right - left) or 1) < _SIZES
            or max(last_top - bottom, top - last_bottom) > (right - left) * length
        )
    return (
        last_bottom > top
        or last_top < bottom
        or not 1 / _SIZES < (last_top - last_bottom) / ((top - bottom) or 1) < _SIZES
        or max(last_right - left, right - last_left) > (top - bottom) * length
    )


def strays(letters: Letters, start: int, end: int, left: float, right: float) -> bool:
    """Whether letters in the middle of a sideways word are on another line.

    If a file draws the words of two lines alternately on a turned page, pdfium puts no space between them.
    """
    boxes = (letters.box(index) for index in range(start + 1, end - 1))
    return any(box is not None and (box[0] > right or box[2] < left) for box in boxes)


def letter_by_letter(
    letters: Letters, text: str, start: int, sideways: bool, visibility: Visibility | None = None
) -> Iterator[Word]:
    """The words that the letters make up by where they are, in PDF coordinates. Invisible letters are left out."""
    word: Word | None = None
    for offset, letter in enumerate(text):
        printed = letter.translate(PRINTED)
        box = letters.box(start + offset) if printed else None
        if box is None:
            continue
        left, top, right, bottom = box
        if visibility is not None and visibility.hides(start + offset, (left + right) / 2, bottom):
            continue
        if word is not None and _touches(word, box, sideways):
            word = Word(
                unicodedata.normalize("NFC", word.text + printed),
                min(word.left, left),
                max(word.top, top),
                max(word.right, right),
                min(word.bottom, bottom),
            )
            continue
        if word is not None:
            yield word
        word = Word(printed, left, top, right, bottom)
    if word is not None:
        yield word


def _touches(word: Word, box: Corners, sideways: bool) -> bool:
    """Whether a letter is on the word's line and next to it."""
    left, top, right, bottom = box
    if sideways:
        height, own = word.right - word.left, right - left
        off = abs(left + right - word.left - word.right) / 2
        gap = max(bottom - word.top, word.bottom - top)
    else:
        height, own = word.top - word.bottom, top - bottom
        off = abs(top + bottom - word.top - word.bottom) / 2
        gap = max(left - word.right, word.left - right)
    return off < height * 0.4 and gap < height / 2 and 1 / _SIZES < own / (height or 1) < _SIZES
