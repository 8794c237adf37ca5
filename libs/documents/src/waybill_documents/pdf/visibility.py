"""Decides whether a person can see a text. Otherwise a sender could show one invoice and have another one read.

Invisible text is left out. If a page has no other text, it is a scan whose text was recognised by OCR, and is read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from pypdfium2 import raw

from waybill_documents.pdf.letters import Letters

_INVISIBLE = frozenset({raw.FPDF_TEXTRENDERMODE_INVISIBLE, raw.FPDF_TEXTRENDERMODE_CLIP})
_UNFILLED = frozenset({raw.FPDF_TEXTRENDERMODE_STROKE, raw.FPDF_TEXTRENDERMODE_STROKE_CLIP})
_WHITE = 250
"""Colour components from this value (of 255) look like white paper."""
_MOST_DRAWN = 50_000
"""How many drawn objects are looked at for backgrounds. Forms may contain forms, and so any number of them."""

# These are called for every text object. What follows the declared argument is passed on as it is.
_mode_of = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(
    ctypes.cast(raw.FPDFTextObj_GetTextRenderMode, ctypes.c_void_p).value or 0
)
_fill_of = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(
    ctypes.cast(raw.FPDFPageObj_GetFillColor, ctypes.c_void_p).value or 0
)

Extent = tuple[float, float, float, float]
"""Left, bottom, right, top."""

Placing = tuple[float, float, float, float, float, float]
"""The numbers a to f by which PDF moves, turns and scales a drawing."""

_AS_IT_IS: Placing = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class Visibility:
    """Knows which text of one page is visible."""

    def __init__(self, page: raw.FPDF_PAGE, letters: Letters) -> None:
        self._page = page
        self._letters = letters
        self.has_invisible = False
        """Whether the page has text that is drawn without any colour, like OCR text."""
        self.plain: set[int | None] = {None}
        """Addresses of text objects that are certainly visible, among those that were looked at."""
        self._hidden: dict[int | None, bool] = {}
        """Whether other text objects are invisible wherever they are. If not, it depends on what is behind them."""
        self._backgrounds: list[Extent] | None = None
        colour = (ctypes.c_uint * 4)()
        self._parts = tuple(ctypes.byref(colour, offset) for offset in (0, 4, 8, 12))
        self._colour = memoryview(colour).cast("B").cast("I")

    def is_plain(self, address: int | None) -> bool:
        """Whether a text object is certainly visible, as nearly all are. Callers look into `plain` first."""
        if address in self._hidden:
            return False
        mode = _mode_of(address)
        if mode in _INVISIBLE:
            self.has_invisible = True
            self._hidden[address] = True
            return False
        if mode not in _UNFILLED and _fill_of(address, *self._parts):
            red, green, blue, alpha = self._colour
            if alpha == 0 or (red >= _WHITE and green >= _WHITE and blue >= _WHITE):
                self._hidden[address] = alpha == 0
                return False
        self.plain.add(address)
        return True

    def hides(self, index: int, x: float, y: float) -> bool:
        """Whether the letter at this point is invisible."""
        address = self._letters.text_object(index)
        if address in self.plain or self.is_plain(address):
            return False
        return self._hidden[address] or not self._has_background(x, y)

    def _has_background(self, x: float, y: float) -> bool:
        if self._backgrounds is None:
            self._backgrounds = list(self._painted())
        return any(left <= x <= right and bottom <= y <= top for left, bottom, right, top in self._backgrounds)

    def _painted(self) -> list[Extent]:
        """Backgrounds on which white text is readable: the boxes of pictures and of coloured areas."""
        found = []
        for each, place in _drawn(self._page):
            kind = raw.FPDFPageObj_GetType(each)
            if kind == raw.FPDF_PAGEOBJ_TEXT or (kind == raw.FPDF_PAGEOBJ_PATH and not _is_dark(each)):
                continue
            left, bottom, right, top = (ctypes.c_float() for _ in range(4))
            if raw.FPDFPageObj_GetBounds(each, left, bottom, right, top):
                found.append(_placed((left.value, bottom.value, right.value, top.value), place))
        return found


def _drawn(page: raw.FPDF_PAGE) -> Iterator[tuple[raw.FPDF_PAGEOBJECT, Placing]]:
    """What is drawn on the page, each with how its coordinates become those of the page.

    A form is a drawing within the drawing. It is no background itself, but what is drawn in it may be one.
    """
    forms: list[tuple[Iterator[raw.FPDF_PAGEOBJECT], Placing]] = [(_objects_of_page(page), _AS_IT_IS)]
    for _ in range(_MOST_DRAWN):
        objects, place = forms[-1]
        each = next(objects, None)
        if each is None:
            forms.pop()
            if not forms:
                return
        elif raw.FPDFPageObj_GetType(each) == raw.FPDF_PAGEOBJ_FORM:
            forms.append((_objects_of_form(each), _within(each, place)))
        else:
            yield each, place


def _objects_of_page(page: raw.FPDF_PAGE) -> Iterator[raw.FPDF_PAGEOBJECT]:
    for number in range(raw.FPDFPage_CountObjects(page)):
        yield raw.FPDFPage_GetObject(page, number)


def _objects_of_form(form: raw.FPDF_PAGEOBJECT) -> Iterator[raw.FPDF_PAGEOBJECT]:
    for number in range(raw.FPDFFormObj_CountObjects(form)):
        yield raw.FPDFFormObj_GetObject(form, number)


def _within(form: raw.FPDF_PAGEOBJECT, place: Placing) -> Placing:
    """How coordinates in a form become those of the page, if the form's own do so by `place`."""
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(form, matrix):
        return place
    a, b, c, d, e, f = place
    return (
        matrix.a * a + matrix.b * c,
        matrix.a * b + matrix.b * d,
        matrix.c * a + matrix.d * c,
        matrix.c * b + matrix.d * d,
        matrix.e * a + matrix.f * c + e,
        matrix.e * b + matrix.f * d + f,
    )


def _placed(box: Extent, place: Placing) -> Extent:
    left, bottom, right, top = box
    a, b, c, d, e, f = place
    corners = [(x * a + y * c + e, x * b + y * d + f) for x in (left, right) for y in (bottom, top)]
    across, up = zip(*corners, strict=True)
    return min(across), min(up), max(across), max(up)


def _is_dark(path: raw.FPDF_PAGEOBJECT) -> bool:
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    if not raw.FPDFPath_GetDrawMode(path, mode, stroke):
        return False
    if stroke.value:
        return True  # a thick line can be a background too
    colour = _fill(path)
    return mode.value != raw.FPDF_FILLMODE_NONE and (colour is None or min(colour[:3]) < _WHITE)


def _fill(each: raw.FPDF_PAGEOBJECT) -> tuple[int, int, int, int] | None:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not raw.FPDFPageObj_GetFillColor(each, red, green, blue, alpha):
        return None
    return red.value, green.value, blue.value, alpha.value
