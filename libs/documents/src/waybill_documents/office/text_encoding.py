"""Decodes bytes of unknown encoding: by a byte order mark, else as UTF-8, else as windows-1252.

UTF-8 is recognised reliably, because a text in an older encoding is practically never valid UTF-8. Which older encoding
it is cannot be told from the bytes; windows-1252 is what Western European and Indonesian machines used.
"""

from __future__ import annotations

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, because its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PLAIN = bytes(range(0x80))
_NO_TEXT = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
"""Characters that are rare in texts. Tab, line ends, form feed, escape (printer files) and backspace are not."""


def decode(data: bytes, *, whole: bool = True) -> str | None:
    """The text, or None if the bytes are not a text. Without the whole file, the last character may be incomplete."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _checked(_decode(data[len(mark) :], encoding, whole=whole))
    if (wide := _wide(data)) is not None:
        return _checked(_decode(data, wide, whole=whole))
    text = _decode(data, "utf-8", whole=whole)
    return _checked(text if text is not None else _older(data))


def _wide(data: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of Western text is zero."""
    sample = data[: 4096 & ~1]
    if len(sample) < 4 or (len(data) % 2 and len(data) <= len(sample)):
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd > 0.6 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.6 * half and odd < 0.1 * half:
        return "utf-16-be"
    return None


def _older(data: bytes) -> str | None:
    # A text is mostly ASCII. Other bytes are data; any bytes would be valid latin-1.
    if len(data.translate(None, _PLAIN)) > 0.3 * len(data):
        return None
    try:
        return data.decode("windows-1252")
    except UnicodeDecodeError:  # five bytes are undefined there
        return data.decode("latin-1")


def _decode(data: bytes, encoding: str, *, whole: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(data, final=whole)
    except UnicodeDecodeError:
        return None


def _checked(text: str | None) -> str | None:
    """The text, unless more than one in a hundred characters is a control character."""
    if text is None:
        return None
    return text if len(_NO_TEXT.findall(text)) * 100 <= len(text) else None
