"""Makes the grids of one table: from the sheet's own columns, or from the words under a header on a page."""

from __future__ import annotations

from collections.abc import Sequence

from waybill_documents.geometry import SheetGrid, Word
from waybill_documents.tables.grid import ColumnKinds, Grid, grid_for
from waybill_documents.tables.header import Header
from waybill_documents.tables.ruled_grid import ruled_grid
from waybill_documents.tables.unheaded import Unheaded


class Grids:
    """The grids of a table. Their maker knows no reader, so that no cycle keeps a document in memory."""

    def __init__(self, unheaded: Unheaded, kinds: ColumnKinds) -> None:
        self.sheet: SheetGrid | None = None
        """The columns of the current page, if it is a sheet."""
        self._unheaded = unheaded
        self._kinds = kinds

    def grid(self, header: Header, rows: Sequence[Sequence[Word]]) -> Grid:
        """The grid of a header and the lines below it."""
        if self.sheet is not None:
            return ruled_grid(header.with_boxes(self._unheaded.on_sheet(header, self.sheet)), self.sheet)
        return grid_for(header.with_boxes(self._unheaded.on_page(header, rows)), rows, self._kinds)
