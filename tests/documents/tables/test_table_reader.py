"""Rows are read completely, across wrapped lines and page breaks, without the lines between them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from support.pages import Printed, extract_pages, line, page, table
from waybill_documents.extraction import Extraction
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Page
from waybill_documents.mapping.model import Mapping
from waybill_documents.tables.cells import Division
from waybill_documents.tables.grid import Grid

COLUMNS: dict[str, Any] = {
    "no": {"header": "No", "type": "integer", "required": True},
    "name": {"header": "Nama Barang"},
    "qty": {"header": "Qty", "type": "decimal"},
    "amount": {"header": "Jumlah", "type": "decimal", "required": True},
}
HEADER = "No   Nama Barang              Qty        Jumlah"
CARRY = {"column": "amount", "out": "Jumlah pindahan", "into": "Pindahan"}


def mapping(columns: dict[str, Any] | None = None, *, begins: str = "no", **rule: Any) -> Mapping:
    given = {"columns": columns or COLUMNS, "row": {"begins": begins}, "end": "Total", **rule}
    return Mapping.model_validate(
        {
            "format": 1,
            "name": "test",
            "title": "Test",
            "locale": {"base": "id", "currencies": ["Rp"]},
            "fields": {"total": {"type": "decimal", "label": "Total"}},
            "tables": {"lines": given},
        }
    )


def pages(*texts: str, leading: float = 12.0) -> list[Page]:
    """Each text is a page in a monospaced font."""
    return [
        page(*table(text.strip("\n").split("\n"), leading=leading), number=number)
        for number, text in enumerate(texts, start=1)
    ]


def read(rule: Mapping, *texts: str, leading: float = 12.0) -> Extraction:
    return extract_pages(rule, *pages(*texts, leading=leading))


def rows(extraction: Extraction, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column].value for column in columns) for row in extraction.extracted.tables["lines"]]


def names(*texts: str, rule: Mapping | None = None) -> list[Any]:
    return [name for (name,) in rows(read(rule or mapping(), *texts), "name")]


def test_a_row_for_each_line_that_begins_one() -> None:
    read_ = read(
        mapping(),
        f"""
{HEADER}
1    Pipa                       5         1.000
2    Mur                       12       2.500,5
Total                                   3.500,5
""",
    )
    assert rows(read_, "no", "name", "qty", "amount") == [
        (1, "Pipa", Decimal(5), Decimal(1000)),
        (2, "Mur", Decimal(12), Decimal("2500.5")),
    ]
    assert read_.extracted.fields["total"].value == Decimal("3500.5")
    assert read_.findings == []


def test_a_minus_that_stands_apart_is_part_of_its_amount() -> None:
    found = read(
        mapping(),
        f"""
{HEADER}
1    Pipa                       5         1.000
2    Gutschrift                 -       - 20,00
3    Rabat                      -          - 50
Total                                       930
""",
    )
    assert rows(found, "name", "qty", "amount") == [
        ("Pipa", Decimal(5), Decimal(1000)),
        ("Gutschrift", None, Decimal(-20)),
        ("Rabat", None, Decimal(-50)),
    ]


def test_a_dash_between_a_text_and_an_amount_casts_doubt() -> None:
    grid = Grid(("name", "amount"), (75.0,), ((0.0, 0.0, 20.0, 10.0), (80.0, 0.0, 110.0, 10.0)))
    division = Division(grid, frozenset(), frozenset({"amount"}), lambda column, text: True)
    assert division.divided(line("Gutschrift a - 20,00"), 1).doubtful == {"amount"}
    assert division.divided(line("Gutschrift a   20,00"), 1).doubtful == set()
    assert division.divided(line("Gutschrift -   20,00"), 1).doubtful == set()


def test_a_dash_before_a_text_of_digits_casts_no_doubt() -> None:
    """An HS code cannot be negative: the dash is the end of the description before it."""
    grid = Grid(("name", "hs_code"), (75.0,), ((0.0, 0.0, 20.0, 10.0), (80.0, 0.0, 110.0, 10.0)))
    division = Division(grid, frozenset(), frozenset(), lambda column, text: True)
    assert division.divided(line("Kawat ekspor - 831110"), 1).doubtful == set()


def test_descriptions_wrap() -> None:
    assert names(
        f"""
{HEADER}
1    Pipa galvanis              5         1.000
     ukuran besar
     - 12 m
2    Mur                       12         2.500
Total                                     3.500
"""
    ) == ["Pipa galvanis ukuran besar - 12 m", "Mur"]


def test_a_description_goes_on_over_the_page_break() -> None:
    found = read(
        mapping(carry=CARRY),
        f"""
{HEADER}
1    Pipa galvanis              5         1.000
     Jumlah pindahan                      1.000
     Dicetak oleh SIMON
""",
        f"""
PT SIMON                       Halaman 2 dari 2
{HEADER}
     Pindahan                             1.000
     ukuran besar
2    Mur                       12         2.500
Total                                     3.500
""",
    )
    assert rows(found, "name", "amount") == [("Pipa galvanis ukuran besar", Decimal(1000)), ("Mur", Decimal(2500))]
    assert [place.page for place in found.extracted.tables["lines"][0]["name"].places] == [1, 2]
    carries = found.extracted.carries["lines"]
    assert [(carry.page, carry.direction, carry.amount, carry.after_rows) for carry in carries] == [
        (1, "out", Decimal(1000), 1),
        (2, "into", Decimal(1000), 1),
    ]
    assert list(carries[0].place.box) == [240, 124, 265, 134]


def test_carried_sums_with_signs_and_spaces() -> None:
    found = read(
        mapping(carry=CARRY),
        f"{HEADER}\n1    Pipa         5   1.000\n     Jumlah pindahan :         Rp      1.234.567,89",
    )
    (carry,) = found.extracted.carries["lines"]
    assert (carry.amount, carry.raw) == (Decimal("1234567.89"), "Rp 1.234.567,89")


def test_a_description_that_begins_like_a_carry_over_is_text() -> None:
    assert names(
        f"""
{HEADER}
1    Ongkos                     5         1.000
     Pindahan gudang
Total                                     1.000
""",
        rule=mapping(carry=CARRY),
    ) == ["Ongkos Pindahan gudang"]


def test_the_foot_of_a_page_is_no_description() -> None:
    def text(number: int, name: str) -> str:
        return f"""
{HEADER}
{number}    {name}                        5         1.000
     Dicetak oleh SIMON, halaman {number}
"""

    assert names(text(1, "Pipa"), text(2, "Mur"), text(3, "Cat")) == ["Pipa", "Mur", "Cat"]


def test_the_same_product_over_and_over_keeps_its_description_on_every_page() -> None:
    def text(first: int) -> str:
        rows = [f"{first + row}    Pipa                        5         1.000\n     warna hitam" for row in range(9)]
        return "\n".join([HEADER, *rows, "", "     Dicetak oleh SIMON"])

    assert names(text(10), text(20), text(30)) == ["Pipa warna hitam"] * 27


def test_the_same_pages_keep_their_descriptions_above_what_they_carry_over() -> None:
    def text(first: int) -> str:
        return f"""
{HEADER}
{first}    Pipa                       5         1.000
      warna hitam
      Jumlah pindahan                      1.000
"""

    assert names(text(10), text(20), text(30), rule=mapping(carry=CARRY)) == ["Pipa warna hitam"] * 3


def test_two_pages_that_end_with_the_same_product_keep_its_description() -> None:
    def text(first: int) -> str:
        return f"{HEADER}\n{first}    Pipa                       5         1.000\n     warna hitam"

    assert names(text(1), text(2)) == ["Pipa warna hitam"] * 2
    assert names(text(1), text(2), f"{HEADER}\n3    Mur                        5         1.000") == [
        "Pipa warna hitam",
        "Pipa warna hitam",
        "Mur",
    ]


def test_two_pages_that_begin_with_the_rest_of_the_same_product_keep_it() -> None:
    def text(first: int) -> str:
        return f"PT SIMON\n{HEADER}\n     warna hitam\n{first}    Pipa                       5         1.000"

    first = f"PT SIMON\n{HEADER}\n1    Pipa                       5         1.000"
    assert names(first, text(2), text(3), text(4)) == ["Pipa warna hitam"] * 3 + ["Pipa"]


def test_the_foot_of_two_pages_below_a_gap_is_no_description() -> None:
    def text(first: int) -> str:
        return f"{HEADER}\n{first}    Pipa                       5         1.000\n\n\n     Terima kasih"

    assert names(text(1), text(2)) == ["Pipa"] * 2


def test_text_further_down_is_no_description() -> None:
    assert names(
        f"""
{HEADER}
1    Pipa                       5         1.000


     Barang yang sudah dibeli
     tidak dapat dikembalikan
"""
    ) == ["Pipa"]


def test_a_stamp_across_the_table_is_no_description() -> None:
    strings: list[Printed] = table(
        [HEADER, *(f"{row}    Pipa                       5         1.000" for row in range(1, 8)), "Total     7.000"]
    )
    found = extract_pages(mapping(), page(*strings, (60, 125, "LUNAS", 40)))
    assert rows(found, "no", "name", "qty", "amount") == [(n, "Pipa", Decimal(5), Decimal(1000)) for n in range(1, 8)]


def test_a_header_only_on_the_first_page() -> None:
    found = read(
        mapping(),
        f"""
PT SIMON
{HEADER}
1    Pipa                       5         1.000
2    Mur                        5         1.000
     galvanis
""",
        """
     PT SIMON


     tahan karat
3    Cat                        5         1.000
Total                                     3.000
""",
    )
    assert rows(found, "no", "name") == [(1, "Pipa"), (2, "Mur galvanis tahan karat"), (3, "Cat")]
    assert found.extracted.fields["total"].value == Decimal(3000)


def test_a_repeated_head_on_pages_without_a_header() -> None:
    def text(number: int) -> str:
        return f"""
     PT SIMON
     Halaman {number}
{number}    Pipa                       5         1.000
"""

    assert names(f"{HEADER}\n1    Mur                        5         1.000", text(2), text(3), text(4)) == [
        "Mur",
        "Pipa",
        "Pipa",
        "Pipa",
    ]


def test_what_belongs_to_the_header_is_no_description_either() -> None:
    def text(number: int, above: str = "") -> str:
        return f"""
{HEADER}
     (lengkap)               (pcs)         (Rp)
{above}{number}    Pipa                       5         1.000
"""

    assert names(text(1), text(2, "     galvanis\n"), text(3)) == ["Pipa galvanis", "Pipa", "Pipa"]


def test_the_words_of_the_end_in_a_row_do_not_end_the_table() -> None:
    found = read(
        mapping(),
        f"""
{HEADER}
1    Pipa                       5         1.000
2    Total Station sewa         5         1.000
3    Mur                        5         1.000
     Total                                3.000
""",
    )
    assert rows(found, "name") == [("Pipa",), ("Total Station sewa",), ("Mur",)]
    assert found.extracted.fields["total"].value == Decimal(3000)


def test_without_an_end_what_is_no_row_is_left_to_the_fields() -> None:
    found = read(mapping(end=None), f"{HEADER}\n1    Pipa                       5         1.000\n\n\nTotal       1.000")
    assert rows(found, "name") == [("Pipa",)]
    assert found.extracted.fields["total"].value == Decimal(1000)


def test_a_column_without_a_name_is_nobodys() -> None:
    header = "No   Nama Barang        Gudang      Qty        Jumlah"
    found = read(mapping(), f"{header}\n1    Pipa               A 12         5         1.000\nTotal   1.000")
    assert rows(found, "no", "name", "qty", "amount") == [(1, "Pipa", Decimal(5), Decimal(1000))]


def test_a_missing_column_is_said() -> None:
    found = read(mapping(), "No   Nama Barang                     Jumlah\n1    Pipa               1.000\nTotal   1.000")
    (finding,) = found.findings
    assert "has no column “Qty”" in finding.message
    assert (finding.code, finding.page, finding.rule) == (FaultCode.TABLE_MISSING, 1, "tables.lines.columns.qty")
    optional = COLUMNS | {"qty": {"header": "Qty", "type": "decimal", "optional": True}}
    text = "No   Nama Barang                     Jumlah\n1    Pipa               1.000\nTotal   1.000"
    assert read(mapping(optional), text).findings == []


def test_a_column_that_is_missing_on_a_later_page_is_said() -> None:
    first = f"{HEADER}\n1    Pipa                       5         1.000"
    second = "No   Nama Barang                     Jumlah\n2    Pipa 3917                        1.000\nTotal  2.000"
    (finding,) = read(mapping(), first, second).findings
    assert finding.message == "The table 'lines' has no column “Qty” on page 2."
    assert (finding.code, finding.page, finding.rule) == (FaultCode.TABLE_MISSING, 2, "tables.lines.columns.qty")
    optional = COLUMNS | {"qty": {"header": "Qty", "type": "decimal", "optional": True}}
    assert len(read(mapping(optional), first, second).findings) == 1


def test_no_table_at_all() -> None:
    (finding,) = read(mapping(), "Total   5").findings
    assert (finding.code, finding.path) == (FaultCode.TABLE_MISSING, "lines")
    assert read(mapping(required=False), "Total   5").findings == []


def test_lines_to_skip() -> None:
    rule = mapping(skip=["Kelompok"])
    text = f"""
{HEADER}
1    Pipa                       5         1.000
Kelompok B          5
     besar
2    Mur                        5         1.000
Total     2.000
"""
    assert names(text, rule=rule) == ["Pipa", "Mur"]


def test_notes_are_rows_of_their_own() -> None:
    found = read(
        mapping(notes={"group": "^Kelompok (.+)$"}),
        f"""
{HEADER}
Kelompok A
1    Pipa                       5         1.000
Kelompok B 2
2    Mur                        5         1.000
Total     2.000
""",
    )
    table_rows = found.extracted.tables["lines"]
    assert [sorted(row) for row in table_rows[::2]] == [["group"], ["group"]]
    assert [row["group"].value for row in table_rows[::2]] == ["A", "B 2"]
    assert list(table_rows[2]["group"].places[0].box) == [75, 136, 90, 146]
    assert [row["name"].value for row in table_rows[1::2]] == ["Pipa", "Mur"]


def test_text_under_a_note_is_not_added_to_it() -> None:
    found = read(
        mapping(notes={"group": "^Kelompok (.+)$"}), f"{HEADER}\nKelompok A\n     besar\n1    Pipa   5     1.000"
    )
    assert [row["group"].value for row in found.extracted.tables["lines"] if "group" in row] == ["A"]


def test_the_number_in_the_middle_of_its_row() -> None:
    text = f"""
{HEADER}
     Pipa galvanis
1    ukuran besar               5         1.000
     12 m
     Mur
2    kecil                      5         1.000
     sekali
3    Cat                        5         1.000
Total     3.000
"""
    expected = ["Pipa galvanis ukuran besar 12 m", "Mur kecil sekali", "Cat"]
    assert names(text, rule=mapping(row={"begins": "no", "anchor": "middle"})) == expected


def test_the_number_between_two_lines_of_its_row() -> None:
    strings: list[Printed] = [(30, 100, HEADER)]
    y = 120.0
    for number in (1, 2, 3):
        strings += [(55, y, f"upper {number}"), (55, y + 12, f"lower {number}")]
        strings += [(30, y + 6, str(number)), (185, y + 6, "5"), (240, y + 6, "1.000")]
        y += 27
    strings.append((30, y + 10, "Total 3.000"))
    found = extract_pages(mapping(row={"begins": "no", "anchor": "middle"}), page(*strings))
    assert rows(found, "name", "amount") == [(f"upper {n} lower {n}", Decimal(1000)) for n in (1, 2, 3)]


def test_rows_of_uneven_height_with_the_number_in_the_middle() -> None:
    text = f"""
{HEADER}
     a1
     a2
1    a3                         5         1.000
     a4
     a5

2    b1                         5         1.000

     c1
3    c2                         5         1.000
     c3

     Barang tidak dapat dikembalikan
"""
    names_ = names(text, rule=mapping(row={"begins": "no", "anchor": "middle"}))
    assert names_[:2] == ["a1 a2 a3 a4 a5", "b1"]
    assert names_[2].startswith("c1 c2 c3")


def test_the_foot_is_not_swallowed_where_the_number_is_in_the_middle() -> None:
    text = f"{HEADER}\n1    Pipa                       5         1.000\n\n\n     Terima kasih"
    assert names(text, rule=mapping(row={"begins": "no", "anchor": "middle"})) == ["Pipa"]


def test_rows_by_a_pattern() -> None:
    rule = mapping(
        {"day": {"type": "text"}, "amount": {"type": "decimal"}},
        row={"pattern": r"^(?P<day>\d\d/\d\d) .* (?P<amount>[\d.,]+)$"},
        start="Mutasi",
        end="Saldo akhir",
        skip=["02/01 batal"],
    )
    found = read(
        rule,
        """
01/01 sebelum 1.000
Mutasi rekening
01/01 setor 2.500
02/01 batal 1
catatan
03/01 tarik 500,5
""",
        """
04/01 setor 7
Saldo akhir 9
05/01 sesudah 1
""",
    )
    assert rows(found, "day", "amount") == [
        ("01/01", Decimal(2500)),
        ("03/01", Decimal("500.5")),
        ("04/01", Decimal(7)),
    ]
    assert list(found.extracted.tables["lines"][0]["amount"].places[0].box) == [90, 124, 115, 134]
    assert unread(found) == ["line below row 1 on page 1 was not understood: 'catatan'"]


def test_rows_by_a_pattern_from_the_first_line_on() -> None:
    rule = mapping({"a": {"type": "integer"}}, row={"pattern": r"^x (?P<a>\d+)$"}, end=None)
    assert rows(read(rule, "x 1\nx 2\ny 3"), "a") == [(1,), (2,)]


@pytest.mark.parametrize("row", [{"begins": "no"}, {"pattern": r"^(?P<no>\d) "}])
def test_too_many_rows_are_refused(row: dict[str, Any]) -> None:
    lines = "\n".join(f"{number}    Pipa                       5         1.000" for number in range(1, 7))
    with pytest.raises(DocumentRejected, match="more than 5 rows") as caught:
        read(mapping(row=row, max_rows=5), f"{HEADER}\n{lines}")
    assert caught.value.code is FaultCode.TOO_MANY_ROWS


def test_cells_that_stand_for_nothing_and_defaults() -> None:
    columns = COLUMNS | {"qty": {"header": "Qty", "type": "decimal", "empty": ["-", "nihil"], "default": "1"}}
    text = f"""
{HEADER}
1    Pipa                       -         1.000
2    Mur                     nihil        1.000
3    Cat                     Rp -         1.000
4    Kuas                                 1.000
Total    4.000
"""
    assert rows(read(mapping(columns), text), "qty") == [(Decimal(1),)] * 4


def test_a_row_that_lacks_something_is_a_finding_with_its_line() -> None:
    found = read(
        mapping(), f"{HEADER}\n1    Pipa                       5\n2    Mur                        5      1x00\n"
    )
    assert [(finding.code, finding.path, finding.page) for finding in found.findings] == [
        (FaultCode.FIELD_MISSING, "lines[0].amount", 1),
        (FaultCode.BAD_VALUE, "lines[1].amount", 1),
    ]
    assert found.findings[0].message == "line 1: amount is missing"
    assert found.findings[1].message.startswith("line 2: amount: '1x00' is not a number")
    assert list(found.findings[1].box or ()) == [225, 124, 245, 134]


def test_a_cell_by_its_pattern() -> None:
    columns = COLUMNS | {"name": {"header": "Nama Barang", "pattern": r"\[(.+)\]"}}
    assert names(f"{HEADER}\n1    Pipa [besar]           5        1.000", rule=mapping(columns)) == ["besar"]


def test_two_tables_on_a_page() -> None:
    rule = Mapping.model_validate(
        {
            "format": 1,
            "name": "test",
            "title": "Test",
            "locale": {"base": "en"},
            "tables": {
                "goods": {
                    "columns": {"no": {"header": "No", "type": "integer"}, "name": {"header": "Item"}},
                    "row": {"begins": "no"},
                    "end": "End of items",
                },
                "taxes": {
                    "columns": {"rate": {"header": "Rate", "type": "decimal"}, "tax": {"header": "Tax"}},
                    "row": {"begins": "rate"},
                },
            },
        }
    )
    found = extract_pages(
        rule, *pages("No    Item\n1     Pipe\n2     Nut\nEnd of items\n\n\nRate     Tax\n11       VAT\n12       PPN")
    )
    assert [row["name"].value for row in found.extracted.tables["goods"]] == ["Pipe", "Nut"]
    assert [row["tax"].value for row in found.extracted.tables["taxes"]] == ["VAT", "PPN"]


@pytest.mark.parametrize(
    ("touching", "expected"),
    [
        ([(55, "Cat"), (205, "1.000.000,0012.500.000")], ("Cat", Decimal(1000000), Decimal(12500000))),
        ([(55, "Cat putih"), (170, "besar12345"), (290, "7.500")], ("Cat putih besar", Decimal(12345), Decimal(7500))),
    ],
)
def test_cells_that_touch_each_other_are_parted(touching: list[tuple[float, str]], expected: tuple[Any, ...]) -> None:
    columns = COLUMNS | {"qty": {"header": "Qty", "type": "decimal", "required": True}}
    usual = "{}    Pipa galvanis ukuran besar     1.250           1.000"
    other = usual.format(2).replace("Pipa galvanis ukuran besar", "Kabel-antipanas-serba-guna")
    strings = table(["No   Nama Barang                      Qty          Jumlah", usual.format(1), other])
    row: list[Printed] = [(30, 136, "3"), *((x, 136, text) for x, text in touching)]
    found = extract_pages(mapping(columns), page(*strings, *row, (30, 148, "Total 1")))
    assert rows(found, "name", "qty", "amount")[2] == expected
    assert found.findings == []
    assert found.extracted.tables["lines"][2]["qty"].confidence < 90


def test_a_word_that_reaches_over_its_column_is_left_whole_where_nothing_is_missing() -> None:
    usual = "{}    Pipa galvanis              12           1.000"
    header = "No   Nama Barang               Qty          Jumlah"
    strings = table([header, usual.format(1), usual.format(2), "3    Mur galvanis M10x50-x100x25           1.000"])
    found = extract_pages(mapping(), page(*strings, (30, 148, "Total 1")))
    assert rows(found, "name", "qty")[2] == ("Mur galvanis M10x50-x100x25", None)


WITH_CODE: dict[str, Any] = COLUMNS | {"code": {"header": "HS Code", "type": "digits"}}
CODE_HEADER = "No   Nama Barang     HS Code   Qty        Jumlah"


def unread(found: Extraction) -> list[str]:
    return [finding.message for finding in found.findings if finding.code is FaultCode.UNREAD_LINE]


def test_a_text_beside_a_wrapped_code_is_kept_and_the_rest_of_the_code_is_told() -> None:
    found = read(
        mapping(WITH_CODE),
        f"""
{CODE_HEADER}
1    Kabel           8544.       5         1.000
     merah (Jasa)    4290
     2 m
2    Mur             7318        5         1.000
Total    2.000
""",
    )
    assert rows(found, "name") == [("Kabel merah (Jasa) 2 m",), ("Mur",)]
    (finding,) = found.findings
    assert finding.message == "line below row 1 on page 1 was not understood: '4290'"
    assert list(finding.box or ()) == [135, 124, 155, 134]
    assert finding.key == "table.unread_line"
    assert finding.params == {"table": "lines", "line": 1, "page": 1, "text": "4290"}


@pytest.mark.parametrize("after", ["2    Mur                        5         1.000\n", ""])
def test_a_row_without_a_number_is_told_wherever_it_stands(after: str) -> None:
    text = (
        f"{HEADER}\n1    Pipa                       5         1.000\n     Bonus kuas                 2             0\n"
    )
    found = read(mapping(), f"{text}{after}Total    2.000")
    assert unread(found) == ["line below row 1 on page 1 was not understood: 'Bonus kuas 2 0'"]
    assert rows(found, "name")[0] == ("Pipa",)


def test_a_row_without_a_number_is_told_at_a_page_break() -> None:
    first = (
        f"{HEADER}\n1    Pipa                       5         1.000\n     Bonus kuas                 2             0"
    )
    bare = "     Bonus cat                  2             0\n2    Mur                        5         1.000\nTotal   1"
    assert unread(read(mapping(), f"{HEADER}\n{first}", bare)) == [
        "line below row 1 on page 1 was not understood: 'Bonus kuas 2 0'",
        "line below row 1 on page 2 was not understood: 'Bonus cat 2 0'",
    ]


def test_any_line_between_two_rows_that_is_not_understood_is_told() -> None:
    found = read(
        mapping(),
        f"""
{HEADER}
1    Pipa                       5         1.000
     dikirim         pada     lusa

     dari gudang
2    Mur                        5         1.000
Total    2.000
""",
    )
    assert unread(found) == [
        "line below row 1 on page 1 was not understood: 'dikirim pada lusa'",
        "line below row 1 on page 1 was not understood: 'dari gudang'",
    ]


def test_what_is_skipped_noted_or_carried_is_understood() -> None:
    found = read(
        mapping(carry=CARRY, skip=["Kelompok"], notes={"group": "^Bagian (.+)$"}),
        f"{HEADER}\nKelompok A      5    6\n1    Pipa                       5         1.000\nBagian B\n"
        "2    Mur                        5         1.000\n     Jumlah pindahan                      2.000\n"
        "     Dicetak oleh SIMON         1   2",
        f"{HEADER}\n     Pindahan                   2.000\n3    Mur                        5         1.000\n"
        "     Hormat kami          Andi\nTotal    3.000",
    )
    assert unread(found) == ["line below row 4 on page 2 was not understood: 'Hormat kami Andi'"]


def test_the_sum_of_a_group_is_a_fields_and_not_lost() -> None:
    group = "{}    Pipa                       5         1.000\n     Total B                              2.000"
    text = f"{group.format(1)}\n{group.format(2)}"
    rule = mapping(end="Grand")
    found = read(rule, f"{HEADER}\n{text}\n3    Pipa                       5         1.000\nGrand total   3.000")
    assert found.findings == []
    lost = "     Total Station              5         1.000"
    assert len(unread(read(rule, f"{HEADER}\n{text}\n{lost}\nGrand total   3.000"))) == 1


def test_a_row_without_a_number_below_the_last_is_told_though_the_table_has_no_end() -> None:
    rule = mapping(end=None)
    text = f"{HEADER}\n1    Pipa                       5         1.000\n     Bonus kuas                 2             0"
    told = "line below row 1 on page 1 was not understood: 'Bonus kuas 2 0'"
    assert unread(read(rule, f"{text}\nTotal                                  1.000\n\n\nTerima kasih")) == [told]
    assert unread(read(rule, text, "     Syarat dan ketentuan\n     berlaku")) == [told]
    complete = f"{HEADER}\n1    Pipa                       5         1.000"
    assert unread(read(rule, f"{complete}\nTotal                                  1.000")) == []


BY_PATTERN = mapping(
    {
        "name": {"type": "text"},
        "qty": {"type": "decimal", "required": True},
        "amount": {"type": "decimal", "required": True},
    },
    row={"pattern": r"^(?P<name>[a-z ]+) (?P<qty>\d+) (?P<amount>[\d.,]+)$"},
    start="Mutasi",
    end=None,
    skip=["Halaman"],
)


def test_lines_between_rows_by_a_pattern_are_told() -> None:
    found = read(
        BY_PATTERN,
        "Kepada yang terhormat\nMutasi\nCatatan di atas\npipa 1 1.000\nmur M10 2 2.000\nHalaman 1\nTotal 9\ncat 3 30",
        "kuas 4 5",
    )
    assert len(rows(found, "name")) == 3
    assert unread(found) == ["line below row 1 on page 1 was not understood: 'mur M10 2 2.000'"]


def test_a_line_like_a_row_below_the_last_one_by_a_pattern_is_told() -> None:
    found = read(BY_PATTERN, "Mutasi\npipa 1 1.000\nmur M10 2 2.000\nSyarat pembayaran 30 hari\nTotal 9")
    assert unread(found) == ["line below row 1 on page 1 was not understood: 'mur M10 2 2.000'"]


def test_the_foot_between_rows_by_a_pattern_is_not_the_tables() -> None:
    foot = "\n\n\n\nDicetak oleh admin 1"
    found = read(BY_PATTERN, f"Mutasi\npipa 1 1.000{foot}", f"mur 2 2.000{foot}", f"cat 3 3.000{foot}")
    assert found.findings == []
    assert len(rows(found, "name")) == 3


def test_very_many_lines_that_are_not_understood_are_counted() -> None:
    body = "\n".join("     Bonus kuas                 2             0" for _ in range(30))
    found = read(mapping(), f"{HEADER}\n1    Pipa                       5         1.000\n{body}\nTotal    1.000")
    assert len(unread(found)) == 21
    assert unread(found)[-1] == "10 more lines of the table 'lines' were not understood"


def test_very_many_cells_that_cannot_be_read_are_counted() -> None:
    body = "\n".join(f"{n}    Pipa                       5          1x00" for n in range(1, 31))
    found = read(mapping(), f"{HEADER}\n{body}\nTotal    1.000")
    assert len(found.findings) == 21
    assert found.findings[0].key == "cell.unreadable"
    assert found.findings[0].params == {
        "column": "lines.amount",
        "line": 1,
        "raw": "1x00",
        "type": "decimal",
        "why": {"key": "text.not_a_number", "params": {"text": "1x00", "example": "1.234,56"}},
    }
    assert found.findings[-1].message == "amount cannot be read in 10 more lines"


def test_a_header_that_is_there_in_part_is_said_with_what_it_lacks() -> None:
    columns = COLUMNS | {"tax": {"header": "PPN"}, "place": {"header": "Gudang"}, "batch": {"header": "Partai"}}
    (finding,) = read(mapping(columns), "No   Nama Barang\n1    Pipa\nTotal   1.000").findings
    assert finding.message == (
        "The table 'lines' was not found. The line most like its header on page 1 has “No”, “Nama Barang”, but not"
        " “Qty”, “Jumlah”, “PPN”, “Gudang”, “Partai” (for qty, amount, tax, place, batch)."
    )
    assert (finding.code, finding.page, finding.rule) == (FaultCode.TABLE_MISSING, 1, "tables.lines")


def test_a_header_without_a_row_is_said_with_the_column_that_begins_rows() -> None:
    rows, line = read(mapping(), f"{HEADER}\nx    Pipa                       5         1.000\nTotal   1.000").findings
    assert rows.message == (
        "The table 'lines' has its header on page 1, but no line below it begins a row: none has a value in the column"
        " 'no'."
    )
    assert line.says.params["text"] == "x Pipa 5 1.000"


def test_a_note_keeps_its_match_or_the_whole_line() -> None:
    text = f"{HEADER}\nKelompok A besar\n1    Pipa   5     1.000\nTotal   1.000"
    for note, expected in (
        ("^Kelompok", "Kelompok"),
        ("^Kelompok (.)", "A"),
        ({"pattern": "^Kelompok (.)"}, "A"),
        ({"pattern": "^Kelompok (.)", "keep": "line"}, "Kelompok A besar"),
    ):
        found = read(mapping(notes={"group": note}), text).extracted.tables["lines"]
        assert [row["group"].value for row in found if "group" in row] == [expected]
