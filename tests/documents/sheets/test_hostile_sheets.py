"""Whatever a workbook contains, a mapping reads it or refuses it with a sentence, in bounded time and memory."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from documents.office.test_hostile_files import FAULTS, book, mutated
from support.sheets import loaded, read_sheets, workbook
from support.workbooks import cell, packed, save, sheet_xml, workbook_parts
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.sheets import layout

COLUMNS: dict[str, Any] = {
    "no": {"header": ["Pos.", "a"], "type": "integer"},
    "name": {"header": ["Artikel", "b"]},
    "amount": {"header": ["Betrag", "shared"], "type": "decimal"},
}
GREEDY = loaded(
    fields={
        "label": {"label": ["a", "Summe"], "type": "decimal"},
        "below": {"label": ["b", "Pos."], "direction": "below", "lines": "1-", "type": "date"},
        "block": {"label": "a", "direction": "block", "lines": "2-"},
        "pattern": {"pattern": "([0-9]+)", "pick": "last"},
        "cells": {"cells": "A1:C3", "lines": "1-"},
        "far": {"cells": "XFD1048576"},
        "sheet": {"label": "a", "sheet": 1, "after": "b", "before": "x"},
    },
    tables={
        "lines": {"columns": COLUMNS, "row": {"begins": "no"}, "end": "Summe", "required": False},
        "matched": {"columns": {"n": {}}, "row": {"pattern": "(?P<n>[0-9]+)"}, "required": False},
    },
    checks={"total": {"expect": "sum(lines.amount) == label", "required": False}},
)


def survives(path: Path) -> str:
    """Whether the file was read, or why it was refused."""
    started = time.monotonic()
    try:
        reading = read_sheets(path, GREEDY)
    except DocumentRejected as fault:
        return fault.code.value if fault.message.endswith(".") else fault.message
    finally:
        assert time.monotonic() - started < 20
    for value in reading.extracted.fields.values():
        assert all(place.cell for place in value.places)
    return "read"


@pytest.mark.parametrize("folder", ["hostile", "office", "invoices/vendors"])
def test_the_corpus(shared_data: Path, tmp_path: Path, folder: str) -> None:
    for path in sorted((shared_data / folder).iterdir()):
        if path.is_file() and path.stat().st_size < 5_000_000:
            copy = tmp_path / f"{path.name}.xlsx"
            copy.write_bytes(path.read_bytes())
            assert survives(copy) in ("read", "no_text", "unreadable", "encrypted", "too_much_text", "not_recognised")
            assert survives(copy.rename(tmp_path / f"{path.name}.csv"))


OF_SHEETS = [
    *("opposite corners", "a wide sheet", "a cell that contradicts its row", "a row that is none", "broken xml"),
    *("prefixed cells in opposite corners", "sheets that share a part", "a sheet that is missing", "no relations"),
]


@pytest.mark.parametrize("name", OF_SHEETS)
def test_hostile_packages(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(packed(FAULTS[name][1]()))
    assert survives(path) != "read"


def test_mutated_workbooks(tmp_path: Path) -> None:
    rng = random.Random(47)
    verdicts = set()
    for _ in range(150):
        path = tmp_path / "a.xlsx"
        path.write_bytes(mutated(book(), rng))
        verdicts.add(survives(path))
    assert len(verdicts) > 1


values = (
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.tuples(st.floats(-1e6, 3e6), st.sampled_from(["date", "moment", "time", "duration"]))
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
    | st.sampled_from(["a", "b", "Pos.", "Artikel", "Betrag", "Summe", "1", "#N/A", "x\ny\n\nz", "Rp", "-", "(", " "])
)
places = st.tuples(st.integers(0, 40), st.integers(0, 12))


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(places, values, max_size=40), st.lists(st.tuples(places, places), max_size=6))
def test_random_sheets(
    tmp_path: Path, cells: dict[tuple[int, int], Any], merged: list[tuple[tuple[int, int], tuple[int, int]]]
) -> None:
    rows: dict[int, str] = {}
    for (row, column), value in sorted(cells.items()):
        rows[row] = rows.get(row, "") + cell(value, row, column)
    spans = "".join(
        f'<mergeCell ref="{chr(65 + left)}{top + 1}:{chr(65 + right)}{bottom + 1}"/>'
        for (top, left), (bottom, right) in merged
    )
    body = "".join(f'<row r="{row + 1}">{its}</row>' for row, its in rows.items())
    path = save(tmp_path / "a.xlsx", workbook_parts({"A": sheet_xml(body, f"<mergeCells>{spans}</mergeCells>")}))
    survives(path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200) | st.text(alphabet=';,"|\t\nab1 .', max_size=200))
def test_random_texts(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("utf-8", "replace"))
    survives(path)


def test_more_words_than_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "a.xlsx", {"A": [["a b c"]], "B": [["d e", 5]]})
    monkeypatch.setattr("waybill_documents.sheets.workbook_reader.MOST_WORDS", 6)
    assert survives(path) == "read"
    monkeypatch.setattr("waybill_documents.sheets.workbook_reader.MOST_WORDS", 5)
    with pytest.raises(DocumentRejected, match="The sheets have more than") as caught:
        read_sheets(path, GREEDY)
    assert caught.value.code is FaultCode.TOO_MUCH_TEXT
    assert layout.MOST_WORDS >= 100_000


def test_merged_cells_that_claim_the_whole_sheet(tmp_path: Path) -> None:
    spans = "".join(f'<mergeCell ref="A{row}:XFD{row + 5}"/>' for row in range(1, 3000))
    body = '<row r="1"><c r="A1" t="inlineStr"><is><t>Summe</t></is></c><c r="B1"><v>5</v></c></row>'
    path = save(tmp_path / "a.xlsx", workbook_parts({"A": sheet_xml(body, f"<mergeCells>{spans}</mergeCells>")}))
    assert survives(path) == "read"


def test_an_endless_name_of_a_sheet_is_not_repeated_for_every_value(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", {"x" * 1_000_000: [["a", 5]]})
    reading = read_sheets(path, GREEDY)
    assert len(str(reading.to_json())) < 20_000
