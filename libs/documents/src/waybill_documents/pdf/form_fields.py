"""Makes the values of form fields part of their page, so that they are read like everything else that is printed there.

A viewer shows a field's appearance and not its value, and so do we: the appearances become text of the page, in memory
only. For fields without one, pdfium makes it from the value, as most viewers do. Hidden fields are not shown.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import pypdfium2
from pypdfium2 import raw

from waybill_documents.geometry import Box

TICKED = "☒"
"""The text of a ticked box. Its mark is drawn, and it may be any sign."""
_BUTTONS = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})


def fill_in(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> list[Box] | None:
    """Add the fields of a page to its text. Returns the boxes that are ticked, in PDF coordinates.

    None if the page has no fields. Otherwise the page must be opened again.
    """
    form = document.formenv
    if form is None or raw.FPDFPage_GetAnnotCount(page.raw) <= 0:
        return None
    shown = (_ticked(form.raw, annotation) for annotation in _annotations(page) if _is_shown(annotation))
    ticked = [box for box in shown if box is not None]
    raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY)
    return ticked


def _annotations(page: pypdfium2.PdfPage) -> Iterator[raw.FPDF_ANNOTATION]:
    for number in range(raw.FPDFPage_GetAnnotCount(page.raw)):
        with _annotation(page, number) as annotation:
            if annotation:
                yield annotation


@contextmanager
def _annotation(page: pypdfium2.PdfPage, number: int) -> Iterator[raw.FPDF_ANNOTATION]:
    annotation = raw.FPDFPage_GetAnnot(page.raw, number)
    try:
        yield annotation
    finally:
        raw.FPDFPage_CloseAnnot(annotation)


def _is_shown(annotation: raw.FPDF_ANNOTATION) -> bool:
    """Whether an annotation is shown on a screen. pdfium would also flatten those that are only printed on paper."""
    flags = raw.FPDFAnnot_GetFlags(annotation)
    if flags & raw.FPDF_ANNOT_FLAG_NOVIEW:
        raw.FPDFAnnot_SetFlags(annotation, flags | raw.FPDF_ANNOT_FLAG_HIDDEN)
    return not flags & (raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW)


def _ticked(form: raw.FPDF_FORMHANDLE, annotation: raw.FPDF_ANNOTATION) -> Box | None:
    """The box of a button that is ticked."""
    if raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_WIDGET:
        return None
    if raw.FPDFAnnot_GetFormFieldType(form, annotation) not in _BUTTONS:
        return None
    box = raw.FS_RECTF()
    if not raw.FPDFAnnot_IsChecked(form, annotation) or not raw.FPDFAnnot_GetRect(annotation, ctypes.byref(box)):
        return None
    return box.left, box.top, box.right, box.bottom
