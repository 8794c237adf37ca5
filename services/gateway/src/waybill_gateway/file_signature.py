"""Recognises a file by its first bytes. Its name and the media type that the client claims are ignored."""

from __future__ import annotations

import codecs
from pathlib import Path

from waybill_gateway.content_negotiation import Kind

_HEAD = 64 * 1024
_PDF_WITHIN = 1024
"""PDF readers accept this many bytes of anything before the header, because printers and mailers add some."""
_BLANK = b" \t\r\n"


def sniff(file: Path) -> Kind | None:
    """PDF, JSON, or neither."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip(_BLANK)
    # Check for JSON first, because the text of a JSON document may contain "%PDF-".
    if start[:1] in (b"{", b"[") and _is_text(head):
        return "json"
    return "pdf" if b"%PDF-" in head[: _PDF_WITHIN + 5] else None


def _is_text(head: bytes) -> bool:
    try:
        # The decoder is incremental, because the head may end in the middle of a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return "\0" not in text
