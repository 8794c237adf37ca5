"""A document as it is, without a mapping: pages with their text and words, and the tables on them.

PDF, Word, Excel and text all end in this one shape, so that whoever imports a folder of them reads one JSON. Formats
without pages have one (Word) or one per sheet (Excel); what a format does not know (sizes, boxes, words) is null or
empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from waybill_documents.words import Box, Page, Word

Kind = Literal["pdf", "docx", "xlsx", "text"]
"""What we can read."""


@dataclass(frozen=True, slots=True)
class PlainPage:
    """One page, or one sheet of a workbook."""

    number: int
    text: str
    """The lines in reading order; the cells of a table's row are parted by tabs."""
    name: str | None = None
    """The name of a sheet."""
    hidden: bool = False
    """A sheet that Excel does not show. It is read all the same: what is hidden is not for us to judge."""
    width: float | None = None
    height: float | None = None
    words: Sequence[Word] = ()
    askew: Sequence[Word] = ()
    """Words in another direction than the text, as watermarks and margin notes are. They are not in it."""

    @classmethod
    def of(cls, page: Page, text: str) -> PlainPage:
        """A page of a PDF, with the text that was made from its words."""
        return cls(page.number, text, width=page.width, height=page.height, words=page.words, askew=page.askew)

    def to_json(self) -> dict[str, Any]:
        """The page; `askew` and `hidden` only where there is such a thing."""
        page: dict[str, Any] = {
            "number": self.number,
            "name": self.name,
            "width": self.width,
            "height": self.height,
            "text": self.text,
            "words": _boxed(self.words),
        }
        if self.askew:
            page["askew"] = _boxed(self.askew)
        return {**page, "hidden": True} if self.hidden else page


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A table: its rows have the same number of cells, and a merged cell's text stands in the first of them."""

    page: int
    rows: Sequence[Sequence[str]]
    box: Box | None = None
    title: str | None = None
    """What stands above the table and belongs to it."""

    def to_json(self) -> dict[str, Any]:
        """The table; `title` only where there is one."""
        table: dict[str, Any] = {
            "page": self.page,
            "box": rounded(self.box) if self.box else None,
            "rows": [list(row) for row in self.rows],
        }
        return {**table, "title": self.title} if self.title else table


@dataclass(frozen=True, slots=True)
class Plain:
    """A whole document."""

    kind: Kind
    pages: Sequence[PlainPage]
    tables: Sequence[PlainTable] = ()

    def to_json(self) -> dict[str, Any]:
        """The "plain document" of docs/gateway.md."""
        return {
            "source": {"kind": self.kind, "pages": len(self.pages)},
            "pages": [page.to_json() for page in self.pages],
            "tables": [table.to_json() for table in self.tables],
        }


def _boxed(words: Sequence[Word]) -> list[dict[str, Any]]:
    return [{"text": word.text, "box": rounded(word[1:])} for word in words]


def rounded(box: Sequence[float]) -> list[float]:
    """A box as JSON: a hundredth of a point is finer than any printer."""
    return [round(side, 2) for side in box]
