"""The ways the vendor's invoice can look.

`LAYOUTS` are made by hand, each with its own difficulty. `varied` mixes their features, so that a reader cannot be
tuned to the nine layouts.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from support.invoices.layout import (
    COURIER,
    TIMES,
    Align,
    Cell,
    Column,
    Dates,
    Labels,
    Layout,
    NoDiscount,
    Npwp,
    Order,
    Rules,
    Rupiah,
)

A4, LETTER, FOLIO = (595.0, 842.0), (612.0, 792.0), (612.0, 936.0)
A4_WIDE, A5_WIDE, CONTINUOUS = (842.0, 595.0), (595.0, 420.0), (684.0, 792.0)

_HEADINGS: dict[Cell, tuple[str, ...]] = {
    "no": ("No",),
    "code": ("Kode",),
    "description": ("Nama Barang / Jasa",),
    "hs_code": ("HS Code",),
    "qty": ("Qty",),
    "unit": ("Satuan",),
    "unit_price": ("Harga Satuan",),
    "discount": ("Diskon",),
    "amount": ("Jumlah",),
}
_WRAPPED: dict[Cell, tuple[str, ...]] = {
    **_HEADINGS,
    "description": ("Nama Barang /", "Jasa"),
    "hs_code": ("HS", "Code"),
    "unit_price": ("Harga", "Satuan"),
}
_RIGHT: frozenset[Cell] = frozenset({"qty", "unit_price", "discount", "amount"})
_AS_DESCRIBED: tuple[Cell, ...] = tuple(_HEADINGS)


def _columns(
    left: float,
    widths: Sequence[float],
    *,
    cells: Sequence[Cell] = _AS_DESCRIBED,
    headings: dict[Cell, tuple[str, ...]] = _HEADINGS,
    centered: frozenset[Cell] = frozenset(),
) -> tuple[Column, ...]:
    made = []
    for cell, width in zip(cells, widths, strict=True):
        align: Align = "center" if cell in centered else "right" if cell in _RIGHT else "left"
        made.append(Column(cell, headings[cell], left, width, align))
        left += width
    return tuple(made)


REFERENCE = Layout(
    name="reference",
    page=A4,
    columns=_columns(30, (24, 47, 153, 38, 40, 38, 65, 61, 69)),
    size=7.5,
    row_gap=8.0,
    npwp=Npwp.DOTTED_16,
    shaded_heading=True,
)

GRID = Layout(
    name="grid",
    page=A4,
    columns=_columns(
        28, (26, 50, 139, 36, 43, 42, 66, 62, 75), headings=_WRAPPED, centered=frozenset({"no", "hs_code", "unit"})
    ),
    font=TIMES,
    size=8.5,
    margin=28,
    rupiah=Rupiah.JOINED,
    sen=False,
    dates=Dates.SHORT,
    labels=Labels.TIGHT,
    no_discount=NoDiscount.DASH,
    rules=Rules.GRID,
    shaded_heading=True,
    heading_align="center",
    meta_align="right",
    buyer_beside_label=False,
    head_on_every_page=True,
    split_rows=False,
)

LANDSCAPE = Layout(
    name="landscape",
    page=A4_WIDE,
    columns=_columns(36, (32, 68, 212, 58, 58, 56, 97, 90, 99)),
    size=9.5,
    margin=36,
    padding=4,
    rupiah=Rupiah.EDGE,
    qty_places=2,
    labels=Labels.ALIGNED,
    npwp=Npwp.DOTTED_15,
    rules=Rules.ROWS,
    title_size=22,
    top_gap=16,
    meta_width=230,
    carry_label="description",
    carry_at_bottom=True,
    words_beside_totals=True,
)

CONTINUOUS_FORM = Layout(
    name="continuous form",
    page=CONTINUOUS,
    columns=_columns(24, (31, 53, 151, 47, 53, 40, 86, 82, 93), centered=frozenset({"unit"})),
    font=COURIER,
    size=8,
    leading=1.15,
    row_gap=1.5,
    padding=4,
    margin=24,
    sen=False,
    dates=Dates.SHORT,
    no_discount=NoDiscount.ZERO,
    rules=Rules.NONE,
    heading_align="left",
    title_size=12,
    top_gap=8,
    meta_width=220,
    head_on_every_page=True,
)

ROTATED = Layout(
    name="rotated",
    page=A4_WIDE,
    rotate=90,
    columns=_columns(40, (30, 64, 230, 52, 55, 54, 92, 85, 100), headings=_WRAPPED),
    font=TIMES,
    size=10,
    margin=40,
    rupiah=Rupiah.APART,
    labels=Labels.TIGHT,
    npwp=Npwp.DOTTED_15,
    no_discount=NoDiscount.ZERO,
    rules=Rules.GRID,
    meta_width=200,
    buyer_x=0.55,
    split_rows=True,
)

BY_COLUMN = Layout(
    name="by column",
    page=LETTER,
    columns=_columns(24, (28, 58, 124, 48, 48, 46, 70, 66, 76), headings=_WRAPPED),
    size=6.5,
    leading=1.3,
    row_gap=3,
    margin=24,
    rupiah=Rupiah.EDGE,
    labels=Labels.ALIGNED,
    npwp=Npwp.DOTTED_16,
    no_discount=NoDiscount.DASH,
    rules=Rules.HEADING,
    heading_align="center",
    meta_align="right",
    carry_at_bottom=True,
    order=Order.COLUMNS,
)

BOTTOM_UP = Layout(
    name="bottom up",
    page=FOLIO,
    columns=_columns(32, (25, 47, 157, 40, 40, 40, 65, 60, 74), centered=frozenset({"qty", "hs_code"})),
    font=TIMES,
    size=8,
    leading=1.35,
    margin=32,
    rupiah=Rupiah.APART,
    sen=False,
    dates=Dates.SHORT,
    no_discount=NoDiscount.BLANK,
    rules=Rules.NONE,
    top_gap=20,
    buyer_x=0.5,
    buyer_beside_label=False,
    carry_label="description",
    words_beside_totals=True,
    order=Order.BOTTOM_UP,
    word_by_word=True,
)

HALF_PAGE = Layout(
    name="half page",
    page=A5_WIDE,
    columns=_columns(22, (24, 48, 179, 40, 40, 36, 61, 57, 66)),
    size=7,
    leading=1.1,
    row_gap=2,
    margin=22,
    rupiah=Rupiah.JOINED,
    qty_places=2,
    labels=Labels.TIGHT,
    no_discount=NoDiscount.ZERO,
    rules=Rules.ROWS,
    title_size=12,
    top_gap=4,
    words_beside_totals=True,
)

REORDERED = Layout(
    name="reordered",
    page=A4_WIDE,
    rotate=270,
    columns=_columns(
        30,
        (32, 236, 66, 56, 58, 60, 96, 80, 98),
        cells=("no", "description", "code", "hs_code", "unit", "qty", "unit_price", "discount", "amount"),
    ),
    size=9,
    rupiah=Rupiah.EDGE,
    sen=False,
    labels=Labels.ALIGNED,
    npwp=Npwp.PLAIN,
    no_discount=NoDiscount.DASH,
    rules=Rules.GRID,
    heading_align="center",
    head_on_every_page=True,
    order=Order.SHUFFLED,
)

LAYOUTS = (REFERENCE, GRID, LANDSCAPE, CONTINUOUS_FORM, ROTATED, BY_COLUMN, BOTTOM_UP, HALF_PAGE, REORDERED)


def varied(layout: Layout, dice: random.Random) -> Layout:
    """The paper of one layout with features of others, and its columns moved a little."""
    return dataclasses.replace(
        layout,
        name=f"{layout.name}, varied",
        columns=_moved(layout.columns, dice),
        size=round(layout.size * dice.uniform(0.85, 1.0), 2),
        leading=round(dice.uniform(1.1, 1.4), 2),
        row_gap=round(dice.uniform(1.5, 8.0), 2),
        top_gap=round(dice.uniform(4, 20), 2),
        rupiah=dice.choice(list(Rupiah)),
        sen=dice.random() < 0.5,
        qty_places=dice.choice((0, 2)),
        dates=dice.choice(list(Dates)),
        npwp=dice.choice(list(Npwp)),
        labels=dice.choice(list(Labels)),
        no_discount=dice.choice(list(NoDiscount)),
        rules=dice.choice(list(Rules)),
        shaded_heading=dice.random() < 0.5,
        heading_align=dice.choice(("left", "center", None)),
        meta_align=dice.choice(("left", "right")),
        buyer_x=dice.choice((0.0, 0.5)),
        buyer_beside_label=dice.random() < 0.5,
        head_on_every_page=dice.random() < 0.5,
        split_rows=dice.random() < 0.5,
        carry_label=dice.choice(("description", "amount")),
        carry_at_bottom=dice.random() < 0.5,
        words_beside_totals=dice.random() < 0.5,
        order=dice.choice(list(Order)),
        word_by_word=dice.random() < 0.3,
    )


def _moved(columns: tuple[Column, ...], dice: random.Random) -> tuple[Column, ...]:
    """Move some width from the descriptions to the other columns, so that everything still fits."""
    shares = {column.cell: dice.random() for column in columns if column.cell != "description"}
    given = next(column.width for column in columns if column.cell == "description") * dice.uniform(0, 0.15)
    moved, x = [], columns[0].x
    for column in columns:
        more = given * shares[column.cell] / sum(shares.values()) if column.cell in shares else -given
        moved.append(dataclasses.replace(column, x=x, width=column.width + more))
        x += column.width + more
    return tuple(moved)
