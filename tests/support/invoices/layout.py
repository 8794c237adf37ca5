"""A layout decides how an invoice is printed, never its content.

Measures are in points, from the top left corner of the displayed page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

Align = Literal["left", "center", "right"]
Cell = Literal["no", "code", "description", "hs_code", "qty", "unit", "unit_price", "discount", "amount"]


class Rupiah(Enum):
    ABSENT = auto()
    JOINED = auto()  # Rp1.234
    APART = auto()  # Rp 1.234
    EDGE = auto()  # Rp at the left edge of the cell, the number at the right


class Dates(Enum):
    LONG = auto()  # 7 Agustus 2025
    SHORT = auto()  # 07/08/2025


class Npwp(Enum):
    PLAIN = auto()  # 16 digits
    DOTTED_16 = auto()  # 07.154.206.5-901.8000
    DOTTED_15 = auto()  # without the leading 0 of a converted old number; one that has none is printed plain


class Labels(Enum):
    SPACED = auto()  # No. Invoice : 2508070002
    TIGHT = auto()  # No. Invoice: 2508070002
    ALIGNED = auto()  # the colons below each other


class NoDiscount(Enum):
    BLANK = auto()
    DASH = auto()
    ZERO = auto()


class Rules(Enum):
    NONE = auto()
    HEADING = auto()  # above and below the heading, and below the table
    ROWS = auto()  # a line below each row
    GRID = auto()  # around each cell


class Order(Enum):
    """In which order the strings of a page are written into its content stream."""

    READING = auto()
    COLUMNS = auto()
    BOTTOM_UP = auto()
    SHUFFLED = auto()


@dataclass(frozen=True)
class Font:
    regular: str
    bold: str
    italic: str


HELVETICA = Font("Helvetica", "Helvetica-Bold", "Helvetica-Oblique")
TIMES = Font("Times-Roman", "Times-Bold", "Times-Italic")
COURIER = Font("Courier", "Courier-Bold", "Courier-Oblique")


@dataclass(frozen=True)
class Column:
    cell: Cell
    heading: tuple[str, ...]  # one string per printed line
    x: float
    width: float
    align: Align


@dataclass(frozen=True)
class Layout:
    name: str
    page: tuple[float, float]
    columns: tuple[Column, ...]
    font: Font = HELVETICA
    size: float = 8.0
    leading: float = 1.2  # line height, in font sizes
    row_gap: float = 4.0  # white space between two lines of the invoice
    padding: float = 2.5  # white space left and right inside a cell
    margin: float = 30.0
    rotate: Literal[0, 90, 270] = 0  # the page's /Rotate; the text is upright when displayed
    rupiah: Rupiah = Rupiah.ABSENT
    sen: bool = True  # whole amounts end in `,00` too; an amount that is not whole always shows its decimals
    qty_places: int = 0
    dates: Dates = Dates.LONG
    npwp: Npwp = Npwp.PLAIN
    labels: Labels = Labels.SPACED
    no_discount: NoDiscount = NoDiscount.BLANK
    rules: Rules = Rules.HEADING
    shaded_heading: bool = False
    heading_align: Align | None = None  # None: as the column
    title_size: float = 16.0
    top_gap: float = 10.0  # between the blocks above the table
    meta_align: Literal["left", "right"] = "left"
    meta_width: float = 170.0
    buyer_x: float = 0.0  # from the left margin, as a share of the width
    buyer_beside_label: bool = True  # the buyer's name follows `Kepada :` on its line
    head_on_every_page: bool = False
    split_rows: bool = True  # a description may break across pages
    carry_label: Literal["description", "amount"] = "amount"  # next to what `Jumlah pindahan` stands
    carry_at_bottom: bool = False  # at the bottom of the page, however short the table
    words_beside_totals: bool = False
    order: Order = Order.READING
    word_by_word: bool = False  # each word is a string of its own, and no space is ever written

    @property
    def line_height(self) -> float:
        return self.size * self.leading

    @property
    def width(self) -> float:
        return self.page[0] - 2 * self.margin

    @property
    def right(self) -> float:
        return self.page[0] - self.margin

    @property
    def bottom(self) -> float:
        return self.page[1] - self.margin

    def column(self, cell: Cell) -> Column:
        return next(column for column in self.columns if column.cell == cell)
