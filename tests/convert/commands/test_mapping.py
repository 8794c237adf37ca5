"""`waybill mapping`: listing, showing and checking mappings, and the words of a document to write one from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Waybill
from support.invoices import LAYOUTS, make_invoice, print_invoice
from waybill_convert.commands.mapping.json_positions import place_of

LEAST: dict[str, Any] = {"format": 1, "name": "small_v1", "title": "Small"}


@pytest.fixture
def invoice(tmp_path: Path) -> Path:
    path = tmp_path / "invoice.pdf"
    path.write_bytes(print_invoice(make_invoice(5, 12), LAYOUTS[0]))
    return path


def written(folder: Path, mapping: dict[str, Any], name: str = "mine.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(mapping, indent=2))
    return path


async def test_shipped_mappings_are_listed_with_their_hashes(bare: Waybill) -> None:
    ran = await bare("mapping", "ls", COLUMNS="80")
    assert ran.code == 0
    assert ran.lines[0].split() == ["NAME", "SHA-256", "TITLE"]
    assert max(map(len, ran.lines)) <= 80
    listed = (await bare("mapping", "ls", "--json")).json
    assert {"pt_simon_invoice_v1", "quality_hosting_v1"} <= {each["name"] for each in listed}
    assert all(len(each["sha256"]) == 64 and each["xml"] for each in listed)


@pytest.mark.parametrize("name", ["pt_simon_invoice_v1", "coolblue_v1", "amazon_web_services_v1", "en16931_ubl"])
async def test_a_mapping_is_shown_in_words(bare: Waybill, name: str) -> None:
    ran = await bare("mapping", "show", name, COLUMNS="80")
    assert ran.code == 0
    assert ran.lines[0].startswith(f"{name} · ")
    assert max(map(len, ran.lines)) <= 80


async def test_a_shown_mapping_can_be_copied(bare: Waybill, tmp_path: Path) -> None:
    ran = await bare("mapping", "show", "oyo_v1", "--json")
    (tmp_path / "copy.json").write_text(ran.out)
    assert (await bare("mapping", "check", tmp_path / "copy.json")).code == 0


async def test_what_a_rule_does_is_said(bare: Waybill) -> None:
    shown = (await bare("mapping", "show", "pt_simon_invoice_v1")).out
    assert "date, right of “Tanggal” or “Tanggal Invoice”, on the first page, required" in shown
    assert "decimal with at most 2 digits after its sign, right of “Subtotal”" in shown
    assert "begins where there is a no" in shown
    assert "the sum of amount from page to page" in shown
    assert "<TaxInvoiceBulk>, checked by coretax.xsd" in shown


async def test_the_words_of_a_document_are_shown_line_by_line(bare: Waybill, invoice: Path) -> None:
    ran = await bare("mapping", "text", invoice)
    assert ran.code == 0
    assert ran.lines[0] == "page 1 of 1"
    assert any(line.startswith("1 │ ") for line in ran.lines)
    found = (await bare("mapping", "text", invoice, "--page", "1", "--json")).json
    assert found[0]["page"] == 1
    assert [line for line in found[0]["lines"] if line[0] == "1"]


async def test_a_file_that_is_no_pdf_is_refused(bare: Waybill, tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(b"\x89PNG\r\n\x1a\n")
    ran = await bare("mapping", "text", "x.pdf")
    assert (ran.code, ran.out) == (1, "")
    assert "damaged" in ran.err


async def test_a_sound_mapping_is_said_to_be(bare: Waybill, tmp_path: Path) -> None:
    path = written(tmp_path, LEAST | {"fields": {"total": {"label": "Total"}}})
    ran = await bare("mapping", "check", path)
    assert (ran.code, ran.out) == (0, f"{path}: valid. 1 field.\n")


async def test_mistakes_are_told_with_their_lines(bare: Waybill, tmp_path: Path) -> None:
    path = written(tmp_path, LEAST | {"fields": {"total": {"labl": "Total"}, "b": {"label": "B", "type": "number"}}})
    ran = await bare("mapping", "check", path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        f"{path}:7:7: fields.total.labl: there is no 'labl' here; did you mean 'label'?",
        f"{path}:11:7: fields.b.type: must be 'text', 'digits', 'integer', 'decimal' or 'date', not 'number'",
    ]


async def test_what_is_no_json_is_told_with_its_line(bare: Waybill, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{\n  "format": 1,\n  oops\n}')
    ran = await bare("mapping", "check", "mine.json")
    assert ran.code == 2
    assert ran.err.startswith("mine.json:3:3: this is not JSON: ")


async def test_a_name_that_is_none_is_met_with_a_hint(bare: Waybill) -> None:
    ran = await bare("mapping", "show", "coolblue_v2")
    assert (ran.code, ran.out) == (2, "")
    assert "Did you mean 'coolblue_v1'?" in ran.err
    assert "`waybill mapping ls`" in (await bare("mapping", "show", "zzz")).err
    assert (await bare("mapping", "show", "../mappings/oyo_v1")).code == 2


async def test_golden_cases_are_checked_too(bare: Waybill, tmp_path: Path) -> None:
    mapping = {**LEAST, "fields": {"total": {"label": "Total"}}, "xml": {"root": {"name": "Total", "value": "total"}}}
    written(tmp_path, mapping, "mapping.json")
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden/one.json").write_text('{"total": "7"}')
    (tmp_path / "golden/one.xml").write_text('<?xml version="1.0" encoding="UTF-8"?>\n<Total>7</Total>\n')
    ran = await bare("mapping", "check", tmp_path)
    assert (ran.code, ran.out) == (0, f"{tmp_path / 'mapping.json'}: valid. 1 field, 1 golden case.\n")
    (tmp_path / "golden/one.json").write_text('{"total": "8"}')
    ran = await bare("mapping", "check", tmp_path)
    assert ran.code == 2
    assert "+<Total>8</Total>" in ran.err


async def test_all_shipped_mappings_are_sound(bare: Waybill) -> None:
    names = [each["name"] for each in (await bare("mapping", "ls", "--json")).json]
    ran = await bare("mapping", "check", *names)
    assert ran.code == 0
    assert len(ran.lines) == len(names)


async def test_the_schema_is_written_and_compared(bare: Waybill, tmp_path: Path) -> None:
    path = tmp_path / "new" / "schema.json"
    assert (await bare("mapping", "schema", "--check", path)).code == 1
    assert (await bare("mapping", "schema", "--write", path)).code == 0
    assert (await bare("mapping", "schema", "--check", path)).code == 0
    assert (await bare("mapping", "schema")).out == path.read_text()
    path.write_text(path.read_text() + " ")
    ran = await bare("mapping", "schema", "--check", path)
    assert ran.code == 1
    assert f"Run: waybill mapping schema --write {path}" in ran.err


TEXT = """{
  "fields": {
    "a": { "label": ["x", "y"] }
  },
  "xml": {
    "root": {
      "name": "Invoice",
      "children": [
        { "name": "Number" },
        { "name": "Lines", "children": [{ "name": "Line", "attributes": { "no": "n" } }] }
      ]
    }
  }
}"""


@pytest.mark.parametrize(
    ("where", "place"),
    [
        (None, (0, 0)),
        ("nothing", (0, 0)),
        ("fields", (2, 3)),
        ("fields.a", (3, 5)),
        ("fields.a.label.1", (3, 27)),
        ("fields.a.type", (3, 5)),
        ("xml.root.children.0", (9, 9)),
        ("xml.root.children[1].children[0]", (10, 41)),
        ("xml.Invoice", (6, 13)),
        ("xml.Invoice.Lines.Line", (10, 41)),
        ("xml.Invoice.Lines.Line@no", (10, 75)),
    ],
)
def test_a_place_is_found_in_the_text(where: str | None, place: tuple[int, int]) -> None:
    assert place_of(TEXT, where) == place


@pytest.mark.parametrize("text", ["", "{", '{"a"', "[" * 5000, '{"a": "', "}", '"'])
def test_a_text_that_is_broken_has_no_places(text: str) -> None:
    assert place_of(text, "a.b") in {(0, 0), (1, 2)}


async def test_rules_for_sheets_and_running_text_are_shown_in_words(bare: Waybill, tmp_path: Path) -> None:
    mapping = {
        "format": 1,
        "name": "a_v1",
        "title": "A",
        "fields": {
            "a": {"label": "L", "sheet": 2, "pattern": "x", "wraps": True},
            "b": {"cells": "C7", "sheet": "S"},
            "c": {"label": "L", "cells": "A1:B2"},
        },
        "tables": {"t": {"columns": {"q": {"header": "Q"}, "u": {"after": "q"}}, "row": {"begins": "q"}}},
    }
    (tmp_path / "m.json").write_text(json.dumps(mapping))
    lines = (await bare("mapping", "show", "m.json")).lines
    assert "  a  right of “L”, what matches /x/, also across lines, on the sheet 2" in lines
    assert "  b  what stands in C7, on the sheet “S”" in lines
    assert "  c  right of “L”, in A1:B2" in lines
    assert "  u  right of q" in lines
