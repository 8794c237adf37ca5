"""How much of a document is read before it is refused. A sandbox bounds memory and time; these give a better answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one document. An invoice of 2,000 lines has about 70 pages and 40,000 words."""

    pages: int = 1_000
    words: int = 1_000_000
    words_on_page: int = 50_000
    attachment_bytes: int = 20_000_000
    pixels: int = 20_000_000
    """Of a page's image: A3 paper at four pixels to a point."""
    pixels_wide: int = 20_000
    """Of its longer side."""
