"""A document without a mapping: pages with their text and words, and the tables on them.

PDF, Word, Excel and text files all have this form, so that a program that imports them reads one kind of JSON. A Word
document has one page, a workbook one per sheet. What a format does not have (sizes, boxes, words) is null or empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from waybill_documents.geometry import Box, Page, Word

Kind = Literal["pdf", "docx", "xlsx", "text"]
"""The formats we can read."""


@dataclass(frozen=True, slots=True)
class PlainPage:
    """One page, or one sheet of a workbook."""

    number: int
    text: str
    """The lines in reading order. The cells of a table row are separated by tabs."""
    name: str | None = None
    """The name of a sheet."""
    hidden: bool = False
    """Whether Excel hides the sheet. Hidden sheets are read too; callers decide what to do with them."""
    width: float | None = None
    height: float | None = None
    words: Sequence[Word] = ()
    askew: Sequence[Word] = ()
    """Words in another direction than the text, such as watermarks and margin notes. The text leaves them out."""

    @classmethod
    def of(cls, page: Page, text: str) -> PlainPage:
        """A page of a PDF, with the text made from its words."""
        return cls(page.number, text, width=page.width, height=page.height, words=page.words, askew=page.askew)

    def to_json(self) -> dict[str, Any]:
        """The page as JSON; `askew` and `hidden` only if they apply."""
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
    """A table. All rows have the same number of cells; the text of a merged cell is in the first of them."""

    page: int
    rows: Sequence[Sequence[str]]
    box: Box | None = None
    title: str | None = None
    """The text above the table that belongs to it."""

    def to_json(self) -> dict[str, Any]:
        """The table as JSON; `title` only if there is one."""
        table: dict[str, Any] = {
            "page": self.page,
            "box": rounded(self.box) if self.box else None,
            "rows": [list(row) for row in self.rows],
        }
        return {**table, "title": self.title} if self.title else table


@dataclass(frozen=True, slots=True)
class PlainDocument:
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
