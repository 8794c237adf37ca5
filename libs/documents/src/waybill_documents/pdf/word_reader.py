"""Reads words with boxes from the pages of a PDF.

pdfium returns the box of one character per call, and these calls are most of the cost of reading. We ask only for the
first and the last character of a word.
"""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from math import atan2, degrees

import pypdfium2
from pypdfium2 import raw

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Box, Page, Word
from waybill_documents.messages import DocumentMessage
from waybill_documents.pdf.form_fields import TICKED, fill_in
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.visibility import Visibility

_WORD = re.compile(r"(?:[^\s\x00-\x01\x03-\x1f\x7f]|(?<=\d)[\xa0\u2009\u202f](?=\d{3}(?!\d)))+")
"""No white space and no control characters, except the non-breaking spaces in `1 234 567`."""
_HYPHENS = frozenset("-\x02\ufffe\xad")
_PRINTED: dict[int, str | None] = str.maketrans(
    {"\x02": "-", "\ufffe": "-", "\xad": "-"}
    | dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufeff")
    | {chr(code): unicodedata.normalize("NFKC", chr(code)) for code in (*range(0xFB00, 0xFB07), *range(0xFF01, 0xFF5F))}
)
"""Replaces pdfium's marks for a hyphen at the end of a line, removes invisible characters, and spells out ligatures and
full-width letters. It leaves `½` and `²` alone, which are part of product names."""
_SAMPLES = 40
"""How many characters are sampled for the page's direction. A page is turned if most of its text is."""
_SIZES = 2.2
"""The heights of letters in one word differ by less than this factor, including superscripts."""
_ASKEW = 10
"""The most degrees that a word may lean and still be part of a line."""

Transform = Callable[[float, float], tuple[float, float]]
Printed = tuple[str, float, float, float, float]
"""A word in PDF coordinates, which grow upwards: left, top, right and bottom, with `top` greater than `bottom`."""

# This is called for every word, like the functions in `visibility`.
_box_of = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
    ctypes.cast(raw.FPDFText_GetLooseCharBox, ctypes.c_void_p).value or 0
)


def pages(document: pypdfium2.PdfDocument, limits: PdfLimits) -> Iterator[Page]:
    """The pages in order, one at a time. Only one page is in memory."""
    words = 0
    for index in range(len(document)):
        page = _read(document, index, limits)
        words += len(page.words)
        if words > limits.words:
            raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("pdf.too_many_words", most=limits.words))
        yield page


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
        turn = turn_of(page, text_page)
        visibility = Visibility(page.raw, text_page.raw)
        words, askew = _words(text_page.raw, turn, limits.words_on_page, visibility)
        recognised = not words and not askew and visibility.has_invisible
        if recognised:
            words, askew = _words(text_page.raw, turn, limits.words_on_page, None)
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


def _words(
    text_page: raw.FPDF_TEXTPAGE, turn: int, limit: int, visibility: Visibility | None
) -> tuple[list[Printed], list[Printed]]:
    """The page's words in PDF coordinates.

    The first list has the words in the page's direction, the second one the others. With `visibility`, invisible words
    are left out.
    """
    text = _text(text_page)
    sideways = turn in (90, 270)
    box = raw.FS_RECTF()
    handle, reference, box_of = ctypes.cast(text_page, ctypes.c_void_p).value, ctypes.addressof(box), _box_of
    seen = visibility.is_plain if visibility is not None else None
    words: list[Printed] = []
    askew: list[Printed] = []
    line_bottom = line_top = 0.0
    for found in _WORD.finditer(text):
        if len(words) + len(askew) >= limit:
            raise DocumentRejected(FaultCode.TOO_MUCH_TEXT, DocumentMessage("pdf.page_too_full", most=limit))
        start, end = found.span()
        printed = found.group()
        if not printed.isascii():
            printed = unicodedata.normalize("NFC", printed.translate(_PRINTED))
            if not printed:
                continue
        if not box_of(handle, start, reference):
            continue
        left, bottom, right, top = box.left, box.bottom, box.right, box.top
        if (
            visibility
            and seen
            and not (seen(start) and (end - start == 1 or not printed[-1].isdigit() or seen(end - 1)))
        ):
            x, y = (left + right) / 2, (bottom + top) / 2
            hidden = visibility.hides(start, x, y)
            if end - start > 1 and visibility.hides(end - 1, x, y) is not hidden:
                words += _letter_by_letter(text_page, found.group(), start, sideways, visibility)
                continue
            if hidden:
                continue
        level = False  # until the last letter turns out to be on the line of the first
        if end - start > 1 and box_of(handle, end - 1, reference):
            hyphens = not _HYPHENS.isdisjoint(printed)
            level = box.left == left if sideways else box.top == top
            if level and not sideways and 0 <= box.right - left <= (top - bottom) * (end - start):
                far = box.right
                if not hyphens or _holds(handle, found.group(), start, box):
                    words.append((printed, left, top, far, bottom))  # the case of nearly all words
                    line_bottom, line_top = bottom, top
                    continue
                box_of(handle, end - 1, reference)
            torn = hyphens or _is_torn(left, bottom, right, top, box, sideways, end - start)
            torn = torn or (sideways and level and _strays(text_page, start, end, left, right))
            if torn and (level or not _leans(text_page, start, turn)):
                words += _letter_by_letter(text_page, found.group(), start, sideways)
                continue
            left = min(left, box.left)
            bottom = min(bottom, box.bottom)
            right = max(right, box.right)
            top = max(top, box.top)
        elif not sideways and bottom == line_bottom and top == line_top:
            level = True  # a single letter beside the word before it
        to = words if level or not _leans(text_page, start, turn) else askew
        to.append((printed, left, top, right, bottom))
    return words, askew


def _holds(handle: int | None, text: str, start: int, box: raw.FS_RECTF) -> bool:
    """Whether the letter after each hyphen of a word is next to it. pdfium joins them wherever they are."""
    reference = ctypes.addressof(box)
    for offset, letter in enumerate(text[:-1]):
        if letter in _HYPHENS:
            if not _box_of(handle, start + offset, reference):
                return False
            right, top, bottom = box.right, box.top, box.bottom
            if not _box_of(handle, start + offset + 1, reference):
                return False
            if box.top != top or abs(box.left - right) >= (top - bottom) / 4:
                return False
    return True


def _is_torn(
    left: float, bottom: float, right: float, top: float, last: raw.FS_RECTF, sideways: bool, letters: int
) -> bool:
    """Whether a word's last letter is on another line than its first, too far away, or of another size."""
    if sideways:
        return bool(
            last.left > right
            or last.right < left
            or not 1 / _SIZES < (last.right - last.left) / ((right - left) or 1) < _SIZES
            or max(last.top - bottom, top - last.bottom) > (right - left) * letters
        )
    return bool(
        last.bottom > top
        or last.top < bottom
        or not 1 / _SIZES < (last.top - last.bottom) / ((top - bottom) or 1) < _SIZES
        or max(last.right - left, right - last.left) > (top - bottom) * letters
    )


def _strays(text_page: raw.FPDF_TEXTPAGE, start: int, end: int, left: float, right: float) -> bool:
    """Whether letters in the middle of a sideways word are on another line.

    If a file draws the words of two lines alternately on a turned page, pdfium puts no space between them.
    """
    box = raw.FS_RECTF()
    for index in range(start + 1, end - 1):
        if raw.FPDFText_GetLooseCharBox(text_page, index, ctypes.byref(box)) and (box.left > right or box.right < left):
            return True
    return False


def _letter_by_letter(
    text_page: raw.FPDF_TEXTPAGE, text: str, start: int, sideways: bool, visibility: Visibility | None = None
) -> Iterator[Word]:
    """Splits what pdfium took for one word. It joins letters that the file draws in sequence, even if they are apart.

    After a hyphen it nearly always joins, wherever the next letter is on the page.
    """
    box = raw.FS_RECTF()
    handle, reference = ctypes.cast(text_page, ctypes.c_void_p).value, ctypes.addressof(box)
    word: Word | None = None
    for offset, letter in enumerate(text):
        printed = letter.translate(_PRINTED)
        if not printed or not _box_of(handle, start + offset, reference):
            continue
        if visibility is not None and visibility.hides(start + offset, (box.left + box.right) / 2, box.bottom):
            continue
        if word is not None and _touches(word, box, sideways):
            word = Word(
                unicodedata.normalize("NFC", word.text + printed),
                min(word.left, box.left),
                max(word.top, box.top),
                max(word.right, box.right),
                min(word.bottom, box.bottom),
            )
            continue
        if word is not None:
            yield word
        word = Word(printed, box.left, box.top, box.right, box.bottom)
    if word is not None:
        yield word


def _touches(word: Word, box: raw.FS_RECTF, sideways: bool) -> bool:
    """Whether a letter is on the word's line and next to it."""
    if sideways:
        height, own = word.right - word.left, box.right - box.left
        off = abs(box.left + box.right - word.left - word.right) / 2
        gap = max(box.bottom - word.top, word.bottom - box.top)
    else:
        height, own = word.top - word.bottom, box.top - box.bottom
        off = abs(box.top + box.bottom - word.top - word.bottom) / 2
        gap = max(box.left - word.right, word.left - box.right)
    return bool(off < height * 0.4 and gap < height / 2 and 1 / _SIZES < own / (height or 1) < _SIZES)


def _text(text_page: raw.FPDF_TEXTPAGE) -> str:
    """The page's text with exactly one character for each of pdfium's, so that the positions match."""
    count = raw.FPDFText_CountChars(text_page)
    if count <= 0:
        return ""
    buffer = (ctypes.c_ushort * (count + 1))()
    raw.FPDFText_GetText(text_page, 0, count, buffer)
    text = bytes(buffer)[: count * 2].decode("utf-16-le", "replace")
    if len(text) == count and "\x00" not in text:
        return text
    # Characters beyond the basic plane, or ones pdfium leaves out of its text: ask for each.
    codes = (raw.FPDFText_GetUnicode(text_page, index) for index in range(count))
    return "".join(chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else " " for code in codes)


def turn_of(page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage) -> int:
    """The degrees, clockwise, by which the page must be turned for its text to be upright."""
    count = text_page.count_chars()
    directions = Counter(
        round(direction / 90) % 4 * 90
        for index in range(0, count, max(1, count // _SAMPLES))
        if (direction := _direction(text_page.raw, index)) is not None
    )
    return directions.most_common(1)[0][0] if directions else int(page.get_rotation())


def _leans(text_page: raw.FPDF_TEXTPAGE, index: int, turn: int) -> bool:
    """Whether a letter's line has another direction than the page's text."""
    direction = _direction(text_page, index)
    return direction is not None and abs((direction - turn + 180) % 360 - 180) > _ASKEW


def _direction(text_page: raw.FPDF_TEXTPAGE, index: int) -> float | None:
    """The direction of a letter's line in degrees, counterclockwise. Slanted letters make no difference."""
    matrix = raw.FS_MATRIX()
    if raw.FPDFText_IsGenerated(text_page, index) == 1 or not raw.FPDFText_GetMatrix(text_page, index, matrix):
        return None
    return degrees(atan2(matrix.b, matrix.a))


def _upright(
    words: list[Printed], turn: int, page: tuple[float, float, float, float], wide: float, high: float
) -> Iterator[Word]:
    """The words on the page in coordinates from the top left corner of the turned page."""
    left, bottom, right, top = page
    moved: dict[int, Transform] = {
        0: lambda x, y: (x - left, top - y),
        90: lambda x, y: (y - bottom, x - left),
        180: lambda x, y: (right - x, y - bottom),
        270: lambda x, y: (top - y, right - x),
    }
    move = moved[turn]
    new = tuple.__new__  # twice as fast as calling `Word`
    for text, word_left, word_top, word_right, word_bottom in words:
        if turn:
            x1, y1 = move(word_left, word_top)
            x2, y2 = move(word_right, word_bottom)
            if x1 > x2:
                x1, x2 = x2, x1
            if y1 > y2:
                y1, y2 = y2, y1
        else:  # the same as `move`, without a call for every corner
            x1, y1, x2, y2 = word_left - left, top - word_top, word_right - left, top - word_bottom
        if x2 > 0 and x1 < wide and y2 > 0 and y1 < high:
            # Two decimals. This takes half the time of `round`.
            yield new(
                Word,
                (
                    text,
                    (x1 * 100 + 0.5) // 1 / 100,
                    (y1 * 100 + 0.5) // 1 / 100,
                    (x2 * 100 + 0.5) // 1 / 100,
                    (y2 * 100 + 0.5) // 1 / 100,
                ),
            )
