"""A column without a header is what stands between two headers and under neither of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.pages import extract_pages, page, table
from support.sheets import loaded, read_sheets, workbook
from waybill_documents.faults import FaultCode, MappingFault
from waybill_documents.values import Row

COLUMNS: dict[str, Any] = {
    "no": {"header": "No", "type": "integer"},
    "name": {"header": "Nama"},
    "qty": {"header": "Qty", "type": "decimal"},
    "price": {"header": "Harga", "type": "decimal", "required": True},
}


def rules(**columns: Any) -> dict[str, Any]:
    lines = {"columns": COLUMNS | columns, "row": {"begins": "no"}, "end": "Total"}
    return {"locale": {"base": "id"}, "tables": {"lines": lines}}


def rows(text: str, *names: str, unread: int = 0, **columns: Any) -> list[tuple[str | None, ...]]:
    found = extract_pages(loaded(**rules(**columns)).mapping, page(*table(text.strip("\n").split("\n"))))
    assert [finding.code for finding in found.findings] == [FaultCode.UNREAD_LINE] * unread
    return [tuple(_shown(row, name) for name in names) for row in found.extracted.tables["lines"]]


def _shown(row: Row, name: str) -> str | None:
    return None if name not in row or row[name].value is None else str(row[name].value)


def test_units_to_the_right_of_their_quantities() -> None:
    text = """
No   Nama                     Qty           Harga
1    Pipa galvanis 4 m          3  pcs     12.350
2    Siku                      10  lusin    1.000
3    Jasa pasang                1             500
Total                                      13.850
"""
    unit = {"after": "qty"}
    assert rows(text, "name", "qty", "unit", "price", unit=unit) == [
        ("Pipa galvanis 4 m", "3", "pcs", "12350"),
        ("Siku", "10", "lusin", "1000"),
        ("Jasa pasang", "1", None, "500"),
    ]


def test_a_text_beside_a_long_description() -> None:
    text = """
No   Nama                          Qty       Harga
1    Pipa galvanis 4 m      A-1      3      12.350
2    Siku                   B-22    10       1.000
     besar dan panjang
3    Jasa                   C-3      1         500
Total                                       13.850
"""
    for place in ({"after": "name"}, {"before": "qty"}):
        assert rows(text, "name", "code", "qty", code=place) == [
            ("Pipa galvanis 4 m", "A-1", "3"),
            ("Siku besar dan panjang", "B-22", "10"),
            ("Jasa", "C-3", "1"),
        ]


def test_a_mark_left_of_the_first_header_and_one_right_of_the_last() -> None:
    text = """
      No   Nama      Qty    Harga
*     1    Pipa        3   12.350    BKP
      2    Siku       10    1.000
*     3    Jasa        1      500    JKP
Total                      13.850
"""
    found = rows(text, "mark", "no", "price", "kind", mark={"before": "no"}, kind={"after": "price"})
    assert found == [
        ("*", "1", "12350", "BKP"),
        (None, "2", "1000", None),
        ("*", "3", "500", "JKP"),
    ]


def test_a_line_across_the_columns_closes_no_gap() -> None:
    body = [f"{number}    Pipa {number}                3  pcs     12.350" for number in range(1, 10)]
    text = [
        "No   Nama                Qty           Harga",
        *body[:5],
        "     barang tidak dapat dikembalikan lagi",
        *body[5:],
    ]
    found = rows("\n".join([*text, "Total   5"]), "qty", "unit", unread=1, unit={"after": "qty"})
    assert [each for each in found if each != ("3", "pcs")] == []


def test_a_column_that_no_row_has_is_empty_and_a_required_one_is_missed() -> None:
    text = "No   Nama          Qty       Harga\n1    Pipa            3      12.350\nTotal   1"
    assert rows(text, "unit", unit={"after": "qty"}) == [(None,)]
    required = rules(unit={"after": "qty", "required": True})
    found = extract_pages(loaded(**required).mapping, page(*table(text.split("\n"))))
    assert [(each.code, each.path) for each in found.findings] == [(FaultCode.FIELD_MISSING, "lines[0].unit")]


def test_the_next_column_of_a_sheet(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx",
        {
            "A": [
                [None, "No", "Nama", "Qty", None, "Harga"],
                ["*", 1, "Pipa", 3, "pcs", 12.5],
                [None, 2, "Siku", 1, None, 2],
            ]
        },
    )
    places = {"mark": {"before": "no"}, "unit": {"after": "qty"}, "none": {"after": "name"}, "last": {"after": "price"}}
    reading = read_sheets(path, loaded(**rules(**places)))
    assert reading.findings == []
    found = [{name: value.value for name, value in row.items()} for row in reading.extracted.tables["lines"]]
    assert [(row["mark"], row["unit"], row["none"], row["last"]) for row in found] == [
        ("*", "pcs", None, None),
        (None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({}, "it: a column needs the words of its header, or the column that it is after or before"),
        ({"after": "nmae"}, "it.after: there is no column called 'nmae'"),
        ({"after": "other"}, "it.after: 'other' has no header itself"),
        ({"after": "qty"}, "only one of these can be beside the same header: other, it"),
        ({"after": "name", "before": "qty"}, "it: a column has a header, or is after or before another one"),
        ({"after": "name", "header": "It"}, "it: a column has a header, or is after or before another one"),
    ],
)
def test_mistakes_are_found_when_the_mapping_is_loaded(column: dict[str, Any], message: str) -> None:
    with pytest.raises(MappingFault) as caught:
        loaded(**rules(other={"after": "qty"}, it=column))
    assert message in str(caught.value).replace("it.header", "it")
