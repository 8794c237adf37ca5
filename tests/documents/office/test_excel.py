"""A workbook is read as Excel shows it: every sheet, every value and every table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.workbooks import Cell, save, sheet, sheet_xml, workbook_parts
from waybill_documents.office import read_excel
from waybill_documents.office.excel import shown
from waybill_documents.office.regions import find_tables
from waybill_documents.plain_document import PlainDocument


def read(folder: Path, *sheets: str, **more: object) -> PlainDocument:
    parts = workbook_parts({f"Sheet{n}": xml for n, xml in enumerate(sheets, start=1)}, **more)  # type: ignore[arg-type]
    return read_excel(save(folder / "book.xlsx", parts))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"),
        (12.5, "12.5"),
        (0.1 + 0.2, "0.3"),
        (1.1 * 3, "3.3"),
        (-0.0, "0"),
        (1234567890123456, "1234567890123456"),
        (15000000.0, "15000000"),
        (1e15 + 0.5, "1000000000000000"),
        (2**53 + 0.0, "9007199254740990"),
        (1e300, "1E+300"),
        (1.5e-7, "0.00000015"),
        (1e-30, "1E-30"),
        (True, "TRUE"),
        (False, "FALSE"),
        ("#DIV/0!", "#DIV/0!"),
        ("#N/A", "#N/A"),
        (" padded\r\nsecond ", "padded\nsecond"),
        ((45876, "date"), "2025-08-07"),
        ((45876.60416666, "moment"), "2025-08-07T14:30:00"),
        ((0.5, "time"), "12:00:00"),
        ((1.5, "duration"), "36:00:00"),
    ],
)
def test_a_cell_is_shown_as_excel_knows_it(tmp_path: Path, value: Cell, expected: str) -> None:
    document = read(tmp_path, sheet([["x", "y"], ["z", value]]))
    assert document.tables[0].rows[1] == ["z", expected]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**11), max_value=10**11))
def test_an_amount_is_never_off(amount: object) -> None:
    expected = f"{amount:f}".rstrip("0").rstrip(".")
    assert shown(float(str(amount))) == ("0" if expected in ("-0", "") else expected)


@given(st.floats())
def test_any_float_can_be_shown(value: float) -> None:
    assert shown(value)


def test_sheets_are_pages_with_names_and_hidden_ones_say_so(tmp_path: Path) -> None:
    document = read(tmp_path, sheet([["a", "b"]]), sheet([]), sheet([["c"]]), hidden=["Sheet3"])
    assert [(page.number, page.name, page.text, page.hidden) for page in document.pages] == [
        (1, "Sheet1", "a\tb", False),
        (2, "Sheet2", "", False),
        (3, "Sheet3", "c", True),
    ]
    shape = document.to_json()
    assert shape["source"] == {"kind": "xlsx", "pages": 3}
    assert "hidden" not in shape["pages"][0]
    assert shape["pages"][2] == {
        "number": 3, "name": "Sheet3", "width": None, "height": None, "text": "c", "words": [], "hidden": True,
    }  # fmt: skip


def test_a_formula_is_its_last_value(tmp_path: Path) -> None:
    xml = sheet_xml('<row r="1"><c r="A1"><f>1+1</f><v>2</v></c><c r="B1" t="str"><f>"a"</f><v>a</v></c></row>')
    assert read(tmp_path, xml).pages[0].text == "2\ta"


def grid(*lines: str) -> list[list[str]]:
    return [[letter.replace(".", "") for letter in line] for line in lines]


def tables(*lines: str, merged: list[tuple[tuple[int, int], tuple[int, int]]] | None = None) -> list[str]:
    """Each table as its lines; digits are numbers, letters text."""
    cells = grid(*lines)
    found = find_tables(cells, merged or [], lambda row, column: not cells[row][column].isdigit())
    return [
        (f"{island.title}: " if island.title else "")
        + " ".join("".join(cell or "." for cell in row) for row in island.rows)
        for island in found
    ]


def test_tables_apart_are_told_apart() -> None:
    assert tables("ab..cd", "11..22") == ["ab 11", "cd 22"]
    assert tables("ab", "11", "..", "..", "cd", "22") == ["ab 11", "cd 22"]
    assert tables("ab..", "11..", "..cd", "..22") == ["ab 11", "cd 22"]


def test_a_blank_line_or_a_spacer_column_does_not_part_a_table() -> None:
    assert tables("ab", "11", "..", "22") == ["ab 11 .. 22"]
    assert tables("a.b", "1.1", "2.2") == ["a.b 1.1 2.2"]


def test_a_row_of_headings_after_a_blank_line_begins_another_table() -> None:
    assert tables("ab", "11", "22", "..", "cd", "33") == ["ab 11 22", "cd 33"]


def test_a_blank_column_parts_tables_that_hardly_stand_side_by_side() -> None:
    assert tables("ab...", "11...", "22...", "33.cd", "...44", "...55") == ["ab 11 22 33", "cd 44 55"]


def test_a_title_above_belongs_to_its_table() -> None:
    assert tables("t..", "abc", "123") == ["t: abc 123"]
    assert tables("t..", "...", "abc", "123") == ["t: abc 123"]


def test_a_lone_cell_is_no_table() -> None:
    assert tables("t", ".", ".", ".") == []
    assert tables("ab", "11", "..", "..", "n.") == ["ab 11"]


def test_a_merged_cell_holds_a_table_together() -> None:
    merged = [((0, 0), (0, 5))]
    assert tables("t.....", "a....b", "1....2", merged=merged) == ["t: a....b 1....2"]


@given(st.lists(st.text(".a1", min_size=7, max_size=7), max_size=12))
def test_no_cell_is_in_two_tables_and_neighbours_are_never_lost(lines: list[str]) -> None:
    cells = grid(*lines)
    found = find_tables(cells, [], lambda row, column: not cells[row][column].isdigit())
    taken: set[tuple[int, int]] = set()
    for island in found:
        region = island.region
        width = region.right - region.left + 1
        assert len(island.rows) == region.bottom - region.top + 1
        assert all(len(row) == width for row in island.rows)
        own = {(row, at) for row in range(region.top, region.bottom + 1) for at in range(region.left, region.right + 1)}
        assert not own & taken
        taken |= own
    for number, row in enumerate(cells):
        for at in range(len(row) - 1):
            if row[at] and row[at + 1]:
                assert {(number, at), (number, at + 1)} <= taken


def test_the_corpus(shared_data: Path) -> None:
    office = shared_data / "office"
    several = read_excel(office / "xlsx_01.xlsx")
    assert [page.name for page in several.pages] == ["Sheet1", "Sheet2", "Sheet3", "Sheet4"]
    assert [page.hidden for page in several.pages] == [False, False, False, True]
    assert [(table.page, len(table.rows), len(table.rows[0])) for table in several.tables] == [
        (1, 7, 3), (2, 9, 4), (2, 5, 3), (2, 5, 3), (3, 7, 3), (3, 7, 3), (4, 2, 1),
    ]  # fmt: skip
    assert several.tables[0].rows[5] == ["5", "1", "-3"]
    ducks = read_excel(office / "xlsx_05_table_with_title.xlsx").tables
    assert [(table.title, table.rows[0]) for table in ducks] == [
        ("Number of freshwater ducks per year", ["Year", "Freshwater Ducks"])
    ]
    edges = read_excel(office / "xlsx_06_edge_cases_.xlsx").tables
    assert [(table.page, len(table.rows), len(table.rows[0])) for table in edges] == [
        (1, 4, 6), (2, 4, 7), (3, 4, 6), (3, 3, 3),
    ]  # fmt: skip
    gaps = read_excel(office / "xlsx_07_gap_tolerance_.xlsx")
    assert ["13", "", "Humidity", "", "%", ":", "100", ""] in gaps.tables[-1].rows
