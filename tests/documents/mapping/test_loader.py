"""Mistakes in a mapping are found when it is loaded, and explained so that the author can fix them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from waybill_documents.catalogue import names
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.loader import load, parse, shipped

LEAST: dict[str, Any] = {"format": 1, "name": "small_v1", "title": "Small"}
LINES = {"columns": {"no": {"header": "No", "type": "integer"}, "name": {"header": "Name"}}, "row": {"begins": "no"}}


def faults(content: bytes | dict[str, Any]) -> list[str]:
    with pytest.raises(MappingFault) as raised:
        parse(content if isinstance(content, bytes) else json.dumps(LEAST | content).encode())
    return [str(raised.value), *(str(other) for other in raised.value.more)]


def test_the_least_mapping_loads() -> None:
    assert parse(json.dumps(LEAST).encode()).name == "small_v1"


def test_the_schema_for_editors_is_not_part_of_it() -> None:
    assert parse(json.dumps({"$schema": "x.json", **LEAST}).encode()).fields == {}


def test_what_is_missing_is_named() -> None:
    assert faults(b"{}") == ["'format' is missing", "'name' is missing", "'title' is missing"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "this is not JSON"),
        (b"[]", "must be an object in { }, not a list"),
        (b'{"format": 1, "format": 1}', "'format' is there twice"),
        (b'{"format": 1,', "this is not JSON"),
        (b"\xff\xfe\x00", "this is not JSON"),
        (b"[" * 100_000, "this is not JSON"),
        (rb'{"title": "a\u0000"}', "NUL character"),
        (rb'{"title": [["a\ud800"]]}', "half of a surrogate pair"),
        (rb'{"a\ud800": 1, "a\ud800": 1}', "half of a surrogate pair"),
        (b" " * 1_000_001, "larger than 1,000,000 bytes"),
    ],
    ids=["empty", "list", "twice", "cut", "binary", "deep", "nul", "half", "half name", "large"],
)
def test_what_is_no_mapping_at_all(content: bytes, sentence: str) -> None:
    assert sentence in faults(content)[0]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"format": 2}, "format: must be 1, not 2"),
        ({"fields": {"net": {"label": "Net", "decimals": 2}}}, "fields.net: only a decimal has decimals"),
        (
            {"fields": {"net": {"label": "Net", "type": "decimal", "decimals": 2, "default": "0.125"}}},
            "fields.net: '0.125' has 3 digits after the decimal sign, but at most 2 are allowed",
        ),
        ({"format": 1.5}, "format: must be 1, not 1.5"),
        ({"name": "Große Rechnung"}, "name: a name begins with a small letter"),
        ({"name": "invoice"}, "name: the name ends with its version, as in 'invoice_v1'"),
        ({"name": "invoice_v0"}, "name: the name ends with its version"),
        ({"name": "invoice_v1b"}, "name: the name ends with its version"),
        ({"name": "auto"}, "name: no mapping can be called 'auto'"),
        ({"recognise": {"all": ["ACME"], "none": [" : "]}}, "recognise: ' : ' has no letters and no digits"),
        ({"recognise": {"preference": 10}}, "recognise.preference: must be less than or equal to 9, not 10"),
        ({"feilds": {}}, "feilds: there is no 'feilds' here; did you mean 'fields'?"),
        ({"fields": {"a": {"labl": "A"}}}, "fields.a.labl: there is no 'labl' here; did you mean 'label'?"),
        ({"fields": {"A": {"label": "A"}}}, "fields.A: a name begins with a small letter"),
        ({"fields": {"a": {"label": 5}}}, "fields.a.label: must be a list in [ ], not 5"),
        ({"fields": {"a": {"label": "A", "required": "very"}}}, "fields.a.required: must be true or false, not 'very'"),
        (
            {"fields": {"a": {"label": "A", "direction": "up"}}},
            "fields.a.direction: must be 'right', 'below' or 'block', not 'up'",
        ),
        (
            {"fields": {"a": {"label": "A", "lines": "all"}}},
            "fields.a.lines: must be a line or lines such as '1', '2-4'",
        ),
        ({"fields": {"a": {"area": {"left": 9, "right": 3}}}}, "fields.a.area: the area is empty"),
        ({"fields": {"a": {"area": {"left": 101}}}}, "fields.a.area.left: must be less than or equal to 100, not 101"),
        ({"fields": {"a": {}}}, "fields.a: say how to find it"),
        ({"fields": {"a": {"constant": "1", "label": "A"}}}, "fields.a: a constant is not searched for"),
        (
            {"fields": {"a": {"label": "A", "required": True, "default": "1"}}},
            "fields.a: a required field has no default",
        ),
        ({"fields": {"a": {"pattern": "(a"}}}, "fields.a.pattern: the pattern is not valid for RE2"),
        ({"fields": {"a": {"pattern": "(?=a)"}}}, "fields.a.pattern: the pattern is not valid for RE2"),
        ({"fields": {"a": {"label": "A", "type": "decimal", "default": "x"}}}, "fields.a: 'x' is not a number"),
        ({"fields": {"a": {"type": "date", "constant": "31/31"}}}, "fields.a: '31/31' is not a date"),
        (
            {"locale": {"base": "xx"}},
            "locale.base: must be 'de', 'en', 'es', 'fr', 'id', 'it', 'nl', 'pl' or 'pt', not 'xx'",
        ),
        ({"locale": {"base": "de", "dates": ["dd.QQ"]}}, "locale.dates: 'dd.QQ': QQ is not part of a date format"),
        ({"tables": {"t": {"columns": {}, "row": {"begins": "a"}}}}, "tables.t.columns: must have at least 1 item"),
        ({"tables": {"t": {**LINES, "row": {"begins": "nr"}}}}, "tables.t.row.begins: there is no column called 'nr'"),
        (
            {"tables": {"t": {**LINES, "row": {}}}},
            "tables.t.row: a row either begins with a column or matches a pattern",
        ),
        ({"tables": {"t": {**LINES, "row": {"begin": "no"}}}}, "tables.t.row.begin: there is no 'begin' here"),
        (
            {"tables": {"t": {"columns": {"no": {}}, "row": {"begins": "no"}}}},
            "tables.t.columns.no.header: a column needs the words of its header",
        ),
        (
            {"tables": {"t": {"columns": {"a": {}}, "row": {"pattern": "(?P<b>x)"}}}},
            "tables.t.row.pattern: there is no column called 'b'",
        ),
        ({"checks": {"c": {"expect": "1 +"}}}, "checks.c.expect: something is missing at the end"),
        ({"checks": {"c": {"expect": "totl == 1"}}}, "checks.c: there is no field or column called 'totl'"),
        ({"checks": {"c": {"expect": "eval('x')"}}}, "checks.c.expect:"),
        ({"computed": {"c": "lookup('units', 'x')"}}, "computed.c: there is no look-up called 'units'"),
        ({"xml": {"root": {"name": "a b"}}}, "xml.root.name: must be the name of an XML element, not 'a b'"),
        (
            {"xml": {"root": {"name": "A", "value": "1", "children": [{"name": "B"}]}}},
            "xml.root: <A> has a value or children, not both",
        ),
        ({"xml": {"root": {"name": "p:A"}}}, "there is no namespace for the prefix 'p'"),
        ({"lookups": {"unit": {"kg": 5}}}, "lookups.unit.kg: must be a text in quotes, not 5"),
        (
            {"embedded": {"output": "cii"}, "fields": {"a": {"label": "A"}}},
            "embedded: an embedded invoice has its own fields",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_named_with_its_place(wrong: dict[str, Any], sentence: str) -> None:
    assert faults(wrong)[0].startswith(sentence) or sentence in faults(wrong)[0]


def test_several_mistakes_are_told_at_once() -> None:
    found = faults({"fields": {"a": {"labl": "A"}, "b": {"label": "B", "type": "number"}}, "locale": {"base": "xx"}})
    assert [sentence.partition(":")[0] for sentence in found] == ["locale.base", "fields.a.labl", "fields.b.type"]


def test_a_file_full_of_mistakes_does_not_fill_the_screen() -> None:
    assert len(faults({"fields": {f"f{number}": {"labl": "A"} for number in range(150)}})) == 20


def test_a_hash_names_the_very_file(tmp_path: Path) -> None:
    content = json.dumps(LEAST).encode()
    (tmp_path / "mapping.json").write_bytes(content)
    assert load(tmp_path).sha256 == hashlib.sha256(content).hexdigest()
    (tmp_path / "mapping.json").write_bytes(content + b"\n")
    assert load(tmp_path).sha256 != hashlib.sha256(content).hexdigest()


def test_a_schema_lies_beside_its_mapping_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "outer.xsd").write_text("<x/>")
    for xsd in ("../outer.xsd", "/etc/passwd", "missing.xsd"):
        (tmp_path / "inner/mapping.json").write_text(json.dumps(LEAST | {"xml": {"root": {"name": "A"}, "xsd": xsd}}))
        with pytest.raises(MappingFault, match="beside the mapping"):
            load(tmp_path / "inner")


def test_shipped_mappings_load_and_others_are_none() -> None:
    assert {"pt_simon_invoice_v1", "en16931_cii", "en16931_ubl", "quality_hosting_v1"} <= set(names())
    for name in names():
        loaded = shipped(name)
        assert loaded is not None
        assert loaded.mapping.name == name
    for name in ("", ".", "..", "../mappings/oyo_v1", "oyo_v1/", "/etc", "nothing", "oyo_v1\x00"):
        assert shipped(name) is None
