"""The letters of a page as pdfium knows them: their boxes, directions and text objects.

pdfium answers about one letter per call, and these calls are most of the cost of reading. They are made in the way that
costs least: without declared argument types, numbers and references made beforehand are passed on as they are, which
takes half the time of converting an address. They also keep the interpreter's lock, because letting go of it would take
longer than the call.
"""

from __future__ import annotations

import ctypes
from math import atan2, degrees

from pypdfium2 import raw

Corners = tuple[float, float, float, float]
"""left, top, right and bottom in PDF coordinates, which grow upwards"""


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a function of pdfium


box_of = ctypes.PYFUNCTYPE(ctypes.c_int)(_address(raw.FPDFText_GetLooseCharBox))
"""`box_of(letters.page, index, letters.into)` writes a letter's box to `letters.corners`, or returns 0."""
object_of = ctypes.PYFUNCTYPE(ctypes.c_void_p)(_address(raw.FPDFText_GetTextObject))
"""`object_of(letters.page, index)` returns the address of a letter's text object; None for a letter without one."""
_is_generated = ctypes.PYFUNCTYPE(ctypes.c_int)(_address(raw.FPDFText_IsGenerated))
_matrix_of = ctypes.PYFUNCTYPE(ctypes.c_int)(_address(raw.FPDFText_GetMatrix))


class Letters:
    """The letters of one page. A loop over words calls `box_of` and `object_of`; the methods are for single letters."""

    def __init__(self, text_page: raw.FPDF_TEXTPAGE) -> None:
        self._text_page = text_page
        box, matrix = raw.FS_RECTF(), raw.FS_MATRIX()
        self.page = ctypes.byref(ctypes.c_char.from_address(_address(text_page)))
        self.into = ctypes.byref(box)
        self.corners = memoryview(box).cast("B").cast("f")
        self._matrix = ctypes.byref(matrix)
        self._slope = memoryview(matrix).cast("B").cast("f")

    @property
    def count(self) -> int:
        """How many there are, the spaces included that pdfium has put between words."""
        return int(raw.FPDFText_CountChars(self._text_page))

    def box(self, index: int) -> Corners | None:
        """A letter's box; None if pdfium does not know it."""
        if not box_of(self.page, index, self.into):
            return None
        left, top, right, bottom = self.corners
        return left, top, right, bottom

    def text_object(self, index: int) -> int | None:
        """The address of the text object that draws a letter."""
        return object_of(self.page, index)  # type: ignore[no-any-return]  # what ctypes makes of a pointer

    def direction(self, index: int) -> float | None:
        """The direction of a letter's line in degrees, counterclockwise. Slanted letters make no difference."""
        if _is_generated(self.page, index) == 1 or not _matrix_of(self.page, index, self._matrix):
            return None
        across, up = self._slope[:2]
        return degrees(atan2(up, across))

    def text(self) -> str:
        """The page's text with exactly one character for each of pdfium's, so that the positions match."""
        count = self.count
        if count <= 0:
            return ""
        buffer = (ctypes.c_ushort * (count + 1))()
        raw.FPDFText_GetText(self._text_page, 0, count, buffer)
        text = bytes(buffer)[: count * 2].decode("utf-16-le", "replace")
        if len(text) == count and "\x00" not in text:
            return text
        # Characters beyond the basic plane, or ones pdfium leaves out of its text: ask for each.
        codes = (raw.FPDFText_GetUnicode(self._text_page, index) for index in range(count))
        return "".join(chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else " " for code in codes)
