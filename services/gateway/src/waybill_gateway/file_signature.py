"""What a file is, by its first bytes. What it is called and what the client says it is are never looked at."""

from __future__ import annotations

import codecs
from pathlib import Path

from waybill_gateway.content_negotiation import Kind

_HEAD = 64 * 1024
_PDF_WITHIN = 1024
"""Readers accept this much of anything before a PDF; printers and mailers do put it there."""
_BLANK = b" \t\r\n"


def sniff(file: Path) -> Kind | None:
    """PDF, JSON, or neither."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip(_BLANK)
    # JSON before a late PDF: an invoice's text may say "%PDF-".
    if start[:1] in (b"{", b"[") and _is_text(head):
        return "json"
    return "pdf" if b"%PDF-" in head[: _PDF_WITHIN + 5] else None


def _is_text(head: bytes) -> bool:
    try:
        # Incremental, because the head may end in the middle of a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return "\0" not in text
