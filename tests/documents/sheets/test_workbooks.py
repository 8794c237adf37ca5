"""A mapping reads workbooks and CSV files as it reads PDFs, with exact values and with cells as places."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.sheets import Rows, loaded, read_sheets, workbook
from support.workbooks import save, sheet_xml, workbook_parts
from waybill_documents.corrections import read_record, revise
from waybill_documents.faults import DocumentRejected, FaultCode, MappingFault
from waybill_documents.reading import Reading

COLUMNS: dict[str, Any] = {
    "no": {"header": "Pos.", "type": "integer"},
    "name": {"header": "Artikel"},
    "quantity": {"header": "Menge", "type": "decimal"},
    "amount": {"header": "Betrag", "type": "decimal", "required": True},
}
LINES: dict[str, Any] = {"columns": COLUMNS, "row": {"begins": "no"}, "end": "Summe"}
FIELDS: dict[str, Any] = {
    "number": {"label": "Rechnungsnr.", "required": True},
    "issued": {"type": "date", "label": "Datum", "required": True},
    "total": {"type": "decimal", "label": "Summe", "required": True},
}
CHECKS = {"total": {"expect": "sum(lines.amount) == total"}}
ROWS: Rows = [
    ["Huber AG"],
    [],
    ["Rechnungsnr.", None, 4711],
    ["Datum:", (45876.0, "date")],
    [],
    ["Pos.", "Artikel", "Menge", None, "Betrag"],
    [1, "Rohr 4 m", 3, "Stk", 37.05],
    [2, "Winkel\n90 Grad", 2, "m", 0.1 + 0.2],
    [None, "verzinkt"],
    [3, 4006381333931, 1.5, None, 1234567.5],
    [],
    [None, None, None, "Summe", "EUR", 1234604.85],
]


def invoice(path: Path, rows: Rows = ROWS, **rules: Any) -> Reading:
    rules = {"fields": FIELDS, "tables": {"lines": LINES}, "checks": CHECKS} | rules
    return read_sheets(workbook(path / "invoice.xlsx", {"Rechnung": rows}), loaded(**rules))


def cell_of(reading: Reading, path: str) -> str | None:
    provenance = reading.to_json()["provenance"]
    table, bracket, rest = path.partition("[")
    if not bracket:
        return str(provenance["fields"][path].get("cell"))
    index, _, column = rest.partition("].")
    return str(provenance["tables"][table][int(index)][column].get("cell"))


def test_an_invoice_is_read_with_fields_rows_and_checks(tmp_path: Path) -> None:
    reading = invoice(tmp_path)
    assert reading.findings == []
    assert reading.extracted.data() == {
        "pages": 1,
        "number": "4711",
        "issued": date(2025, 8, 7),
        "total": Decimal("1234604.85"),
        "lines": [
            {"no": 1, "name": "Rohr 4 m", "quantity": Decimal(3), "amount": Decimal("37.05")},
            {"no": 2, "name": "Winkel 90 Grad verzinkt", "quantity": Decimal(2), "amount": Decimal("0.3")},
            {"no": 3, "name": "4006381333931", "quantity": Decimal("1.5"), "amount": Decimal("1234567.5")},
        ],
    }
    assert reading.extracted.fields["total"].confidence == 100


def test_the_provenance_names_cells_instead_of_pages_and_boxes(tmp_path: Path) -> None:
    reading = invoice(tmp_path)
    record = json.loads(json.dumps(reading.to_json()))
    assert record["source"] == {"kind": "xlsx", "sheets": [{"number": 1, "name": "Rechnung"}]}
    assert record["provenance"]["fields"]["number"] == {
        "rule": "fields.number",
        "raw": "4711",
        "confidence": 95,
        "sheet": 1,
        "cell": "Rechnung!C3",
    }
    assert cell_of(reading, "issued") == "Rechnung!B4"
    assert cell_of(reading, "lines[1].name") == "Rechnung!B8:B9"
    assert cell_of(reading, "lines[2].amount") == "Rechnung!E10"


def test_cells_are_counted_from_the_corner_of_the_sheet(tmp_path: Path) -> None:
    below = [[], [], *[[None, None, *row] for row in ROWS]]
    reading = invoice(tmp_path, below)
    assert reading.findings == []
    assert (cell_of(reading, "number"), cell_of(reading, "lines[0].amount")) == ("Rechnung!E5", "Rechnung!G9")


@pytest.mark.parametrize(
    ("type_", "cell", "expected"),
    [
        ("decimal", 12.5, Decimal("12.5")),
        ("decimal", 1234567.25, Decimal("1234567.25")),
        ("decimal", -0.005, Decimal("-0.005")),
        ("decimal", 1e20, Decimal(10**20)),
        ("integer", 3.0, 3),
        ("text", 12.5, "12.5"),
        ("text", 4006381333931.0, "4006381333931"),
        ("text", (45876.0, "date"), "2025-08-07"),
        ("text", (45876.5, "moment"), "2025-08-07T12:00:00"),
        ("text", True, "TRUE"),
        ("digits", 4006381333931, "4006381333931"),
        ("digits", (45876.0, "date"), "20250807"),
        ("date", (45876.0, "date"), date(2025, 8, 7)),
        ("date", (45876.75, "moment"), date(2025, 8, 7)),
        # Texts are read by the locale.
        ("decimal", "1.234,50", Decimal("1234.50")),
        ("date", "7. August 2025", date(2025, 8, 7)),
    ],
)
@pytest.mark.parametrize("locale", [{"base": "de"}, {"base": "de", "dates": ["dd.MM.yy", "d. MMMM yyyy"]}])
def test_typed_cells_are_exact_and_texts_are_read_by_the_locale(
    tmp_path: Path, locale: dict[str, Any], type_: str, cell: Any, expected: Any
) -> None:
    fields = {"it": {"type": type_, "label": "It", "required": True}}
    path = workbook(tmp_path / "a.xlsx", {"A": [["It", cell]]})
    reading = read_sheets(path, loaded(locale=locale, fields=fields))
    assert reading.findings == []
    assert reading.extracted.fields["it"].value == expected


def test_an_old_date_stays_in_its_century(tmp_path: Path) -> None:
    fields = {"born": {"type": "date", "label": "Born"}}
    path = workbook(tmp_path / "a.xlsx", {"A": [["Born", (18264.0, "date")]]})
    reading = read_sheets(path, loaded(locale={"base": "en", "dates": ["dd/MM/yy"]}, fields=fields))
    assert reading.extracted.fields["born"].value == date(1950, 1, 1)


@pytest.mark.parametrize(
    ("type_", "cell", "message"),
    [
        ("date", 45876, "it: '45876' is not a date such as 7. August 2025"),
        ("integer", 3.5, "it: '3,5' is not a whole number"),
        ("decimal", (45876.0, "date"), "it: '7. August 2025' is not a number such as 1.234,56"),
        ("decimal", "1,234.50", "it: '1,234.50' is not a number such as 1.234,56"),
    ],
)
def test_a_cell_of_another_type_is_a_finding(tmp_path: Path, type_: str, cell: Any, message: str) -> None:
    fields = {"it": {"type": type_, "label": "It", "required": True}}
    [finding] = read_sheets(workbook(tmp_path / "a.xlsx", {"A": [["It", cell]]}), loaded(fields=fields)).findings
    assert (finding.message, finding.to_json()["sheet"], finding.cell) == (message, 1, "A!B1")
    assert not {"page", "box"} & finding.to_json().keys()


@pytest.mark.parametrize(
    ("rule", "expected", "cell"),
    [
        ({"label": "Auftrag"}, "B-77", "A!A1"),
        ({"label": "Kunde", "direction": "below", "lines": "1-3", "join": "; "}, "Huber AG; Ring 3; Wien", "A!A4"),
        ({"label": "Kunde", "direction": "block", "lines": "2-", "join": "; "}, "Huber AG; Ring 3; Wien", "A!A4"),
        ({"label": "Ort", "direction": "below", "lines": "1-2", "join": "; "}, "Graz; Linz", "A!C3:C4"),
        ({"pattern": "UID: (AT[A-Z0-9]+)"}, "ATU123", "A!C2"),
        ({"label": "Kunde", "direction": "right"}, "Nr. 5", "A!B3"),
        ({"cells": "B3"}, "Nr. 5", "A!B3"),
        ({"cells": "C3:C4", "lines": "1-2"}, "Graz Linz", "A!C3:C4"),
        ({"cells": "A3:B3", "pattern": "[0-9]+"}, "5", "A!B3"),
        ({"pattern": "L[a-z]+$", "after": "UID"}, "Linz", "A!C4"),
    ],
)
def test_where_a_value_can_be(tmp_path: Path, rule: dict[str, Any], expected: str, cell: str) -> None:
    rows: Rows = [
        ["Auftrag: B-77"],
        [None, None, "UID: ATU123"],
        ["Kunde", "Nr. 5", "Graz"],
        ["Huber AG\nRing 3\nWien", None, "Linz"],
    ]
    if rule.get("label") == "Ort":
        rows = [rows[0], [None, None, "Ort"], *rows[2:]]
    reading = read_sheets(workbook(tmp_path / "a.xlsx", {"A": rows}), loaded(fields={"it": rule}))
    assert (reading.extracted.fields["it"].value, cell_of(reading, "it")) == (expected, cell)


def test_areas_belong_to_pages_and_cells_to_sheets(tmp_path: Path) -> None:
    fields = {"it": {"area": {"top": 0}, "required": True}}
    [finding] = read_sheets(workbook(tmp_path / "a.xlsx", {"A": [["x"]]}), loaded(fields=fields)).findings
    assert finding.message == "it was not found."


def test_merged_cells_reach_over_their_columns(tmp_path: Path) -> None:
    rows: Rows = [
        ["Pos.", "Artikel", None, "Menge", "Betrag"],
        [1, "Rohr", "4 m", 2, 5],
        [2, None, "Winkel", 1, 2],
        ["Summe", None, None, None, 7],
    ]
    path = workbook(tmp_path / "a.xlsx", {"A": rows}, merged=["B1:C1", "A4:D4"])
    reading = read_sheets(path, loaded(tables={"lines": LINES}, fields={"total": FIELDS["total"]}, checks=CHECKS))
    assert reading.findings == []
    assert [row["name"].value for row in reading.extracted.tables["lines"]] == ["Rohr 4 m", "Winkel"]


def test_a_column_without_a_header_is_nobodys(tmp_path: Path) -> None:
    reading = invoice(tmp_path)
    assert {str(row["quantity"].value) for row in reading.extracted.tables["lines"]} == {"3", "2", "1.5"}


def test_formulas_have_the_value_that_excel_computed(tmp_path: Path) -> None:
    formula = '<c r="B1"><f>1+1</f><v>37.050000000000004</v></c>'
    body = f'<row r="1"><c r="A1" t="inlineStr"><is><t>Summe</t></is></c>{formula}</row>'
    path = save(tmp_path / "a.xlsx", workbook_parts({"A": sheet_xml(body)}))
    assert read_sheets(path, loaded(fields={"total": FIELDS["total"]})).extracted.fields["total"].value == Decimal(
        "37.05"
    )


# Sheets

TWO: dict[str, Rows] = {"Deckblatt": [["Nr.", 1]], "Rechnung 2025": [["Nr.", 2]], "Geheim": [["Nr.", 3]]}


@pytest.mark.parametrize(
    ("rules", "rule", "expected"),
    [
        ({}, {}, "1"),
        ({}, {"pick": "last"}, "2"),
        ({}, {"sheet": "rechnung 2025"}, "2"),
        ({}, {"sheet": 2}, "2"),
        ({}, {"sheet": "Geheim"}, "3"),
        ({}, {"page": "last"}, "2"),
        ({"sheets": ["Rechnung 2025"]}, {}, "2"),
        ({"sheets": [3]}, {"page": "first"}, "3"),
        ({"sheets": ["Rechnung", 2]}, {}, "2"),
        ({}, {"sheet": "Lager"}, None),
    ],
)
def test_sheets_are_chosen_by_name_or_number_and_hidden_ones_only_by_choice(
    tmp_path: Path, rules: dict[str, Any], rule: dict[str, Any], expected: str | None
) -> None:
    path = workbook(tmp_path / "a.xlsx", TWO, hidden=["Geheim"])
    reading = read_sheets(path, loaded(fields={"it": {"label": "Nr."} | rule}, **rules))
    assert reading.extracted.fields["it"].value == expected


def test_a_table_is_read_from_its_sheet(tmp_path: Path) -> None:
    table: Rows = [["Pos.", "Artikel", "Menge", "Betrag"], [1, "Rohr", 1, 5]]
    path = workbook(tmp_path / "a.xlsx", {"Alt": table, "Neu": [*table, [2, "Winkel", 1, 2]]})
    lines = read_sheets(path, loaded(tables={"lines": LINES})).extracted.tables["lines"]
    assert [row["no"].value for row in lines] == [1, 1, 2]
    lines = read_sheets(path, loaded(tables={"lines": LINES | {"sheet": "Neu"}})).extracted.tables["lines"]
    assert [row["no"].value for row in lines] == [1, 2]


def test_rows_on_a_sheet_without_a_header_are_not_rows(tmp_path: Path) -> None:
    table: Rows = [["Pos.", "Artikel", "Menge", "Betrag"], [1, "Rohr", 1, 5]]
    path = workbook(tmp_path / "a.xlsx", {"Rechnung": table, "Lager": [[7, "Mutter", 100, 200]]})
    assert len(read_sheets(path, loaded(tables={"lines": LINES})).extracted.tables["lines"]) == 1


def test_a_workbook_without_the_sheet_is_another_document(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", TWO)
    with pytest.raises(DocumentRejected, match="it has no sheet “Lager” or “9”") as caught:
        read_sheets(path, loaded(sheets=["Lager", 9]))
    assert caught.value.code is FaultCode.NOT_RECOGNISED


@pytest.mark.parametrize(
    ("sheets", "hidden", "code", "message"),
    [
        ({"A": []}, [], FaultCode.NO_TEXT, "The sheets have no filled cells."),
        ({"A": [["x"]]}, ["A"], FaultCode.NOT_RECOGNISED, "The workbook has no visible sheet."),
    ],
)
def test_nothing_to_read(
    tmp_path: Path, sheets: dict[str, Rows], hidden: list[str], code: FaultCode, message: str
) -> None:
    with pytest.raises(DocumentRejected, match=message) as caught:
        read_sheets(workbook(tmp_path / "a.xlsx", sheets, hidden=hidden), loaded(fields={"it": {"label": "x"}}))
    assert caught.value.code is code


def test_sheets_are_recognised_by_their_texts(tmp_path: Path) -> None:
    with pytest.raises(DocumentRejected, match="it lacks “Huber GmbH”"):
        invoice(tmp_path, recognise={"all": ["Huber GmbH"]})
    assert invoice(tmp_path, recognise={"all": ["Huber AG", "90 Grad"], "none": ["Angebot"]}).findings == []


def test_findings_speak_of_cells_and_sheets_not_of_pages(tmp_path: Path) -> None:
    rows: Rows = [["Pos.", "Preis"], ["x", "Rohr"], ["Datum"]]
    found = invoice(tmp_path, rows).findings
    assert [finding.message for finding in found] == [
        "number was not found: no sheet has “Rechnungsnr.”.",
        "issued was not found: there is nothing beside “Datum” in Rechnung!A3.",
        "total was not found: no sheet has “Summe”.",
        "The table 'lines' was not found: no sheet has its header with rows under it.",
    ]


def test_a_row_that_is_not_understood_is_a_finding_with_its_cells(tmp_path: Path) -> None:
    rows: Rows = [*ROWS[:9], [None, None, 7, None, 99], *ROWS[9:]]
    unread = [finding for finding in invoice(tmp_path, rows).findings if finding.code is FaultCode.UNREAD_LINE]
    assert [(each.message, each.cell) for each in unread] == [
        ("line below row 2 in Rechnung!C10:E10 was not understood: '7 99'", "Rechnung!C10:E10")
    ]


def test_an_embedded_invoice_is_not_looked_for_in_a_workbook(tmp_path: Path) -> None:
    with pytest.raises(MappingFault, match="embedded in a PDF"):
        read_sheets(workbook(tmp_path / "a.xlsx", TWO), loaded(embedded={"output": "cii"}))


# Records


def test_a_record_leads_back_to_what_was_read(tmp_path: Path) -> None:
    reading = invoice(tmp_path)
    record = json.loads(json.dumps(reading.to_json()))
    again = read_record(reading.loaded, record)
    assert again == reading.extracted


def test_a_value_can_be_corrected_in_the_documents_spelling(tmp_path: Path) -> None:
    rows: Rows = [*ROWS[:6], [1, "Rohr 4 m", 3, "Stk", 30], *ROWS[7:]]
    reading = invoice(tmp_path, rows)
    assert [finding.code for finding in reading.findings] == [FaultCode.CHECK_FAILED]
    revised = revise(reading.loaded, json.loads(json.dumps(reading.to_json())), [("lines[0].amount", "37,05")])
    assert (revised.refused, revised.reading.findings) == ([], [])
    assert cell_of(revised.reading, "lines[0].amount") == "Rechnung!E7"


@pytest.mark.parametrize(
    "wrong", [{"sheet": 0}, {"sheet": "1"}, {"cell": "7"}, {"cell": 5}, {"cell": None}, {"cell": "A0"}]
)
def test_a_record_with_an_impossible_cell_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    reading = invoice(tmp_path)
    record = json.loads(json.dumps(reading.to_json()))
    record["provenance"]["fields"]["number"] |= wrong
    with pytest.raises(MappingFault, match="which cell the value is in"):
        read_record(reading.loaded, record)


# CSV

CSV = """Huber AG;;;
Rechnungsnr.;4711

Datum;07.08.2025
Pos.;Artikel;Menge;Betrag
1;"Rohr; 4 m";3;37,05
2;Winkel;2;1.234,50
Summe;;;1.271,55
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252"])
@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_a_csv_file_is_read_by_the_locale(tmp_path: Path, encoding: str, sign: str) -> None:
    text = CSV if sign == ";" else CSV.replace("; 4", ", 4").replace(";", sign)
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    reading = read_sheets(tmp_path / "a.csv", loaded(fields=FIELDS, tables={"lines": LINES}, checks=CHECKS))
    assert reading.findings == []
    assert reading.extracted.fields["issued"].value == date(2025, 8, 7)
    assert reading.extracted.fields["total"].value == Decimal("1271.55")
    assert cell_of(reading, "issued") == "B4"
    assert cell_of(reading, "lines[1].amount") == "D7"
    assert reading.source == {"kind": "text", "sheets": [{"number": 1, "name": None}]}


def test_a_text_without_a_separator_has_one_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Rechnung 4711\n\nDatum: 7. August 2025\n")
    fields = {"issued": FIELDS["issued"], "number": {"pattern": "^Rechnung ([0-9]+)$"}}
    reading = read_sheets(tmp_path / "a.csv", loaded(fields=fields))
    assert (reading.findings, cell_of(reading, "issued")) == ([], "A3")


# Properties

amounts = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9)
days = st.integers(1, 80_000)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(amounts, days, st.sampled_from(["Rohr", "Pos. 5", "1.234,50", "Summe", "-"])), max_size=6))
@pytest.mark.parametrize("base", ["de", "en", "fr", "pl"])
def test_whatever_a_sheet_holds_is_what_is_read(
    tmp_path: Path, base: str, lines: list[tuple[Decimal, int, str]]
) -> None:
    columns = {
        "no": {"header": "No.", "type": "integer", "required": True},
        "name": {"header": "Name", "empty": []},
        "day": {"header": "Day", "type": "date"},
        "amount": {"header": "Amount", "type": "decimal"},
    }
    rows: Rows = [
        ["No.", "Name", "Day", "Amount"],
        *[
            (number, name, (float(day), "date"), float(amount))
            for number, (amount, day, name) in enumerate(lines, start=1)
        ],
    ]
    mapping = loaded(
        locale={"base": base}, tables={"lines": {"columns": columns, "row": {"begins": "no"}, "required": False}}
    )
    reading = read_sheets(workbook(tmp_path / "a.xlsx", {"A": rows}), mapping)
    epoch = date(1899, 12, 30).toordinal()
    assert reading.findings == []
    assert [[value.value for value in row.values()] for row in reading.extracted.tables["lines"]] == [
        [number, name, date.fromordinal(epoch + day + (day < 60)), amount]
        for number, (amount, day, name) in enumerate(lines, 1)
    ]
