"""Which values of a mapping are essential, and what a record says about them."""

from __future__ import annotations

from typing import Any

from support.pages import page, table
from support.records import pt_simon_loaded, read_page, record_of
from waybill_documents.essential_values import essential
from waybill_documents.mapping.loader import shipped
from waybill_documents.mapping.model import Mapping

MAPPING: dict[str, Any] = {
    "format": 1,
    "name": "t_v1",
    "title": "T",
    "locale": {"base": "en"},
    "fields": {
        "number": {"label": "Number"},
        "net": {"type": "decimal", "label": "Net"},
        "rate": {"type": "decimal", "label": "Rate", "default": "20"},
        "remark": {"label": "Remark"},
        "date": {"label": "Date", "required": True},
        "shown": {"label": "Shown"},
    },
    "computed": {"half": "net / 2", "vat": "half * rate / 50", "unused": "remark"},
    "checks": {"vat": {"expect": "vat < 10", "required": False}},
    "xml": {
        "root": {
            "name": "a",
            "attributes": {"n": "number"},
            "children": [{"name": "b", "value": "vat", "when": "not empty(shown)"}],
        }
    },
}


def test_what_the_xml_is_made_from_is_essential_and_what_is_required() -> None:
    found = essential(Mapping.model_validate(MAPPING))
    assert found == ["number", "net", "rate", "date", "shown", "half", "vat"]


def test_in_a_row_a_name_means_the_tables_column_first() -> None:
    columns = {name: {"header": name} for name in ("name", "note", "price")} | {
        "no": {"header": "No", "type": "integer", "required": True}
    }
    lines = {"columns": columns, "row": {"begins": "no"}, "computed": {"text": "concat(name, number, lines.price)"}}
    root = {"name": "a", "children": [{"name": "line", "each": "lines", "children": [{"name": "t", "value": "text"}]}]}
    fields = {"name": {"label": "Name"}, "number": {"label": "Number"}}
    mapping = {
        **MAPPING,
        "fields": fields,
        "tables": {"lines": lines},
        "computed": {},
        "checks": {},
        "xml": {"root": root},
    }
    found = essential(Mapping.model_validate(mapping))
    assert found == ["number", "lines.name", "lines.price", "lines.no", "lines.text"]


def test_of_a_shipped_mapping_only_what_nobody_gets_to_see_is_not() -> None:
    mapping = pt_simon_loaded().mapping
    names = {*mapping.fields, *mapping.computed, *(f"lines.{name}" for name in mapping.tables["lines"].columns)}
    names |= {f"lines.{name}" for name in mapping.tables["lines"].computed}
    assert names.difference(essential(mapping)) == {"due_date", "page_count", "lines.code"}


def test_an_embedded_invoice_has_none() -> None:
    loaded = shipped("en16931_cii")
    assert loaded is not None
    assert essential(loaded.mapping) == []


def test_a_record_names_them_and_what_a_check_disproves_although_it_was_not_read() -> None:
    printed = table(["Number : 7", "Net : 100", "Date : today", "Shown : yes"])
    record = record_of(read_page(MAPPING | {"review_below": 85}, page(*printed)))
    assert record["review"] == {
        "below": 85,
        "essential": ["number", "net", "rate", "date", "shown", "half", "vat"],
        "disproved": ["vat"],
    }
    assert record["provenance"]["fields"]["net"]["confidence"] == 95, "nobody doubts what it was made from"
    record = record_of(read_page({**MAPPING, "checks": {}}, page(*printed)))
    assert (record["review"]["below"], record["review"]["disproved"]) == (None, [])
