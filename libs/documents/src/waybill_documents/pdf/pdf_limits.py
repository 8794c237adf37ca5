"""Limits on a PDF. The sandbox also limits memory and time, but these limits give a better error message."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PdfLimits:
    """Limits on one document. An invoice of 2,000 lines has about 70 pages and 40,000 words."""

    pages: int = 1_000
    words: int = 1_000_000
    words_on_page: int = 50_000
    attachment_bytes: int = 20_000_000
    attachments: int = 100
    """Embedded files that are listed and handed out."""
    pixels: int = 20_000_000
    """Pixels of a page image: A3 paper at four pixels per point."""
    pixels_wide: int = 20_000
    """Pixels of the longer side of a page image."""
