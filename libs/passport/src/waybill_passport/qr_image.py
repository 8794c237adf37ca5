"""A label's text as a QR code: a PNG or an SVG, the same bytes each time."""

from __future__ import annotations

import io

import segno

_LEVEL = "m"
_QUIET = 4
"""Modules of white around the code, as the standard wants it."""
SMALLEST = 200


def version_of(text: str) -> int:
    """How large the code is: from 1 to 40."""
    return int(_code(text).version)


def png(text: str, *, at_least: int = SMALLEST) -> bytes:
    """A picture that is at least so many pixels wide."""
    code = _code(text)
    width, _ = code.symbol_size(border=_QUIET)
    written = io.BytesIO()
    code.save(written, kind="png", scale=-(-at_least // width), border=_QUIET, dark="#000", light="#fff")
    return written.getvalue()


def svg(text: str) -> bytes:
    """A drawing that fits wherever it is put."""
    written = io.BytesIO()
    _code(text).save(
        written, kind="svg", border=_QUIET, dark="#000", light="#fff", xmldecl=False, omitsize=True, nl=False
    )
    return written.getvalue()


def _code(text: str) -> segno.QRCode:
    return segno.make_qr(text, error=_LEVEL, boost_error=False)
