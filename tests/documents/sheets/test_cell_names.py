"""Cells are called as Excel calls them, and a name leads back to its cells."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waybill_documents.sheets.cell_names import MOST_COLUMNS, MOST_ROWS, cells_box, cells_name, column_letters

columns = st.integers(0, MOST_COLUMNS - 1)
rows = st.integers(0, MOST_ROWS - 1)


@pytest.mark.parametrize(
    ("sheet", "cells", "name"),
    [
        ("Sheet1", (6, 2, 6, 2), "Sheet1!C7"),
        ("Sheet1", (0, 0, 9, 3), "Sheet1!A1:D10"),
        ("My sheet", (0, 26, 0, 26), "'My sheet'!AA1"),
        ("Müller's", (0, 0, 0, 0), "'Müller''s'!A1"),
        ("A1", (0, 0, 0, 0), "'A1'!A1"),
        ("R1C1", (0, 0, 0, 0), "'R1C1'!A1"),
        ("2025", (0, 0, 0, 0), "'2025'!A1"),
        (None, (0, 16_383, 1_048_575, 16_383), "XFD1:XFD1048576"),
    ],
)
def test_names_of_cells(sheet: str | None, cells: tuple[int, int, int, int], name: str) -> None:
    assert cells_name(sheet, *cells) == name


@settings(max_examples=100)
@given(st.none() | st.text(min_size=1, max_size=31), columns, rows, columns, rows)
def test_a_name_leads_back_to_its_cells(sheet: str | None, left: int, top: int, right: int, bottom: int) -> None:
    (left, right), (top, bottom) = sorted((left, right)), sorted((top, bottom))
    assert cells_box(cells_name(sheet, top, left, bottom, right)) == (left, top, right + 1, bottom + 1)


@given(st.text(max_size=20))
def test_any_other_text_is_no_name(text: str) -> None:
    box = cells_box(text)
    assert box is None or (0 <= box[0] < box[2] <= MOST_COLUMNS and 0 <= box[1] < box[3] <= MOST_ROWS)


@pytest.mark.parametrize("text", ["", "7", "C", "C0", "XFE1", "A1048577", "A1:B", "Sheet1!", "A1!B2!C3x", "-A1"])
def test_names_that_excel_would_refuse(text: str) -> None:
    assert cells_box(text) is None


def test_letters_of_columns() -> None:
    assert [column_letters(number) for number in (0, 25, 26, 701, 702)] == ["A", "Z", "AA", "ZZ", "AAA"]
