"""Pictures of pages, for a person to see where the values stand: the boxes of a provenance fit onto them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pypdfium2

from waybill_documents.pdf.images import drawn

_LONGEST_SIDE = 1_400
"""Pixels, at most, whatever size a page says it has."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as it is read, turned until its text is upright."""

    page: int
    width: int
    height: int
    png: bytes


def pictures(document: pypdfium2.PdfDocument, turns: dict[int, int], wanted: Collection[int]) -> Iterator[Picture]:
    """The wanted pages, in order. `turns` has each page's `Page.turn`."""
    for number in sorted(wanted):
        page = document[number - 1]
        try:
            wide, high = page.get_size()
            # Paper comes out at 130 dpi: sharp enough to read, and a tenth of a megabyte.
            scale = min(1.8, _LONGEST_SIDE / max(wide, high, 1))
            image = drawn(page, turns.get(number, page.get_rotation()), scale)
            yield Picture(number, image.width, image.height, image.png)
        finally:
            page.close()
