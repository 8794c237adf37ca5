"""Golden cases: every shipped mapping keeps writing the same XML."""

from __future__ import annotations

import json
from decimal import Decimal
from importlib import resources
from pathlib import Path

import pytest
from lxml import etree

from waybill_documents.catalogue import names
from waybill_documents.golden_cases import GoldenCase, golden_cases
from waybill_documents.mapping.loader import load, shipped

MAPPINGS = resources.files("waybill_documents") / "mappings"
CASES = [(name, case) for name in names() for case in golden_cases(MAPPINGS / name)]


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}-{case.name}" for name, case in CASES])
def test_a_golden_case_holds(name: str, case: GoldenCase) -> None:
    loaded = shipped(name)
    assert loaded is not None
    assert case.difference(loaded) == ""


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}-{case.name}" for name, case in CASES])
def test_the_totals_that_are_written_add_up(name: str, case: GoldenCase) -> None:
    totals = etree.fromstring(case.xml.read_bytes()).find("Totals")
    if totals is None or totals.find("Net") is None:
        return
    parts = [Decimal(totals.findtext(part) or 0) for part in ("Net", "Credits", "Tax")]
    assert sum(parts) == Decimal(totals.findtext("Gross", ""))


def test_every_shipped_mapping_has_golden_cases() -> None:
    # Hybrid mappings start from XML and not from data; they have their own tests.
    assert [name for name in names() if not list((MAPPINGS / name / "golden").iterdir())] == []
    ours = {name for name in names() if (loaded := shipped(name)) and loaded.mapping.embedded is None}
    assert {name for name, _ in CASES} == ours


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    mapping = {
        "format": 1,
        "name": "small_v1",
        "title": "Small",
        "fields": {"total": {"type": "decimal", "label": "Total", "required": True}},
        "xml": {"root": {"name": "Total", "value": "total"}},
    }
    (tmp_path / "mapping.json").write_text(json.dumps(mapping))
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden/one.json").write_text('{"total": "1.50"}')
    return tmp_path


def difference(folder: Path) -> str:
    [case] = golden_cases(folder)
    return case.difference(load(folder))


def test_a_case_that_holds_has_no_difference(folder: Path) -> None:
    (folder / "golden/one.xml").write_text('<?xml version="1.0" encoding="UTF-8"?>\n<Total>1.50</Total>\n')
    assert difference(folder) == ""


def test_a_case_that_does_not_hold_shows_the_lines(folder: Path) -> None:
    (folder / "golden/one.xml").write_text('<?xml version="1.0" encoding="UTF-8"?>\n<Total>1.60</Total>\n')
    assert "-<Total>1.60</Total>\n+<Total>1.50</Total>" in difference(folder)


def test_a_case_without_its_xml_says_so(folder: Path) -> None:
    assert difference(folder) == "there is no one.xml beside it"


def test_data_that_does_not_fit_is_said_as_for_any_document(folder: Path) -> None:
    (folder / "golden/one.json").write_text('{"totl": "1.50"}')
    (folder / "golden/one.xml").write_text("<Total/>")
    assert "did you mean 'total'?" in difference(folder)


def test_a_folder_without_cases_has_none(tmp_path: Path) -> None:
    assert list(golden_cases(tmp_path)) == []
