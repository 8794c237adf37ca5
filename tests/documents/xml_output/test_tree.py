"""Data is written as exactly the XML that a mapping describes, or refused with findings."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode, MappingFault
from waybill_documents.mapping.model import Mapping
from waybill_documents.xml_output import check_tree, render

_LINES = {"columns": {"name": {}, "amount": {"type": "decimal"}}, "row": {"begins": "name"}}


def mapping(root: dict[str, Any], **more: Any) -> Mapping:
    """A mapping with two fields and a table, which writes this tree."""
    xml = {"root": root, "namespaces": more.pop("namespaces", {})}
    fields = {name: {"pattern": "(.*)"} for name in ("number", "note", "empty_one")}
    return Mapping.model_validate(
        {"format": 1, "name": "m", "title": "M", "fields": fields, "tables": {"lines": _LINES}, "xml": xml, **more}
    )


def rendered(root: dict[str, Any], data: dict[str, Any], *, pretty: bool = False, **more: Any) -> str:
    """The XML without the declaration."""
    body = render(mapping(root, **more), data, pretty=pretty, schema=None).decode()
    declaration, _, rest = body.partition("\n")
    assert declaration == '<?xml version="1.0" encoding="UTF-8"?>'
    return rest


def leaf(value: str, **more: Any) -> dict[str, Any]:
    return {"name": "r", "value": value, **more}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "<r>plain</r>"),
        ("a < b & c > d", "<r>a &lt; b &amp; c &gt; d</r>"),
        ("one\r\ntwo", "<r>one&#13;\ntwo</r>"),
        (Decimal("37500.00"), "<r>37500.00</r>"),
        (Decimal("1E+3"), "<r>1000</r>"),
        (Decimal("1E-7"), "<r>0.0000001</r>"),
        (Decimal("-0.00"), "<r>0.00</r>"),
        (7, "<r>7</r>"),
        (True, "<r>true</r>"),
        (date(2025, 8, 7), "<r>2025-08-07</r>"),
        (None, "<r/>"),
        ("", "<r/>"),
        ("Übergrößenträger 𝄞", "<r>Übergrößenträger 𝄞</r>"),
    ],
)
def test_each_value_is_spelt_plainly(value: Any, shown: str) -> None:
    assert rendered(leaf("number"), {"number": value}) == shown + "\n"


def test_order_attributes_and_namespaces_are_the_mappings() -> None:
    root = {
        "name": "i:Invoice",
        "children": [
            {
                "name": "c:B",
                "value": "number",
                "attributes": {"currency": "'EUR'", "c:scheme": "note", "gone": "empty_one"},
            },
            {"name": "c:A", "value": "'a'"},
        ],
    }
    data = {"number": "1", "note": 'say "x"\n', "empty_one": None}
    shown = rendered(root, data, namespaces={"i": "urn:i", "c": "urn:c&d"})
    assert shown == (
        '<i:Invoice xmlns:i="urn:i" xmlns:c="urn:c&amp;d">'
        '<c:B currency="EUR" c:scheme="say &quot;x&quot;&#10;">1</c:B><c:A>a</c:A></i:Invoice>\n'
    )


def test_the_empty_prefix_is_the_default_namespace() -> None:
    assert rendered(leaf("'x'"), {}, namespaces={"": "urn:d"}) == '<r xmlns="urn:d">x</r>\n'


def test_pretty_indents_by_two_and_says_the_same() -> None:
    root = {
        "name": "r",
        "children": [
            {"name": "head", "value": "note"},
            {
                "name": "list",
                "children": [{"name": "line", "each": "lines", "children": [{"name": "n", "value": "name"}]}],
            },
            {"name": "none", "children": [{"name": "x", "value": "'x'", "when": "number == '2'"}]},
        ],
    }
    data = {"note": "two\nlines", "number": "1", "lines": [{"name": "a"}, {"name": "b"}]}
    pretty = rendered(root, data, pretty=True)
    assert pretty == (
        "<r>\n  <head>two\nlines</head>\n  <list>\n"
        "    <line>\n      <n>a</n>\n    </line>\n    <line>\n      <n>b</n>\n    </line>\n  </list>\n  <none/>\n</r>\n"
    )
    compact = etree.fromstring(rendered(root, data).encode())
    parsed = etree.fromstring(pretty.encode(), etree.XMLParser(remove_blank_text=True))
    assert etree.tostring(parsed) == etree.tostring(compact)


def test_a_row_sees_its_own_values_first() -> None:
    root = {
        "name": "r",
        "children": [{"name": "l", "each": "lines", "value": "concat(number, name)", "attributes": {"n": "amount"}}],
    }
    data = {"number": "N", "lines": [{"name": "a", "amount": Decimal("1.50")}, {"name": "b", "amount": None}]}
    assert rendered(root, data) == '<r><l n="1.50">Na</l><l>Nb</l></r>\n'


def test_when_and_omit_empty_leave_out() -> None:
    root = {
        "name": "r",
        "children": [
            {"name": "kept", "value": "empty_one"},
            {"name": "left", "value": "empty_one", "omit_empty": True},
            {"name": "said", "value": "'x'", "when": "amount_is == '1'"},
            {"name": "unsaid", "value": "'x'", "when": "empty_one == '1'"},
            {"name": "group", "omit_empty": True, "children": [{"name": "l", "each": "lines", "value": "name"}]},
            {"name": "list", "children": [{"name": "l", "each": "lines", "value": "name"}]},
        ],
    }
    data: dict[str, Any] = {"amount_is": "1", "empty_one": None, "lines": []}
    assert rendered(root, data) == "<r><kept/><said>x</said><list/></r>\n"


def test_what_xml_cannot_carry_is_a_finding_that_names_the_value() -> None:
    root = {"name": "r", "children": [{"name": "l", "each": "lines", "children": [{"name": "Name", "value": "name"}]}]}
    data = {"lines": [{"name": "fine"}, {"name": "bell \x07"}, {"name": "half \ud800"}]}
    with pytest.raises(DocumentRejected) as fault:
        render(mapping(root), data, pretty=False, schema=None)
    assert fault.value.code is FaultCode.BAD_VALUE
    assert [(finding.path, finding.message) for finding in fault.value.findings] == [
        ("lines[1].name", "line 2: <Name> has a character that XML cannot carry (U+0007)"),
        ("lines[2].name", "line 3: <Name> has a character that XML cannot carry (U+D800)"),
    ]


def test_a_whole_column_is_not_a_value() -> None:
    with pytest.raises(DocumentRejected) as fault:
        render(mapping(leaf("lines.name")), {"lines": [{"name": "a"}]}, pretty=False, schema=None)
    assert "whole column" in fault.value.findings[0].message


def test_an_unknown_look_up_is_a_finding_with_its_line() -> None:
    root = {"name": "r", "children": [{"name": "Unit", "each": "lines", "value": "lookup('unit', name)"}]}
    with pytest.raises(DocumentRejected) as fault:
        render(
            mapping(root, lookups={"unit": {"kg": "UM.0003"}}),
            {"lines": [{"name": "KG"}, {"name": "zak"}]},
            pretty=False,
            schema=None,
        )
    (finding,) = fault.value.findings
    assert finding.code is FaultCode.UNKNOWN_LOOKUP
    assert finding.path == "lines[1].name"
    assert "zak" in finding.message


def test_a_thousand_wrong_values_are_twenty_findings_and_a_number() -> None:
    root = {"name": "r", "children": [{"name": "l", "each": "lines", "value": "name"}]}
    with pytest.raises(DocumentRejected) as fault:
        render(mapping(root), {"lines": [{"name": "\0"}] * 1000}, pretty=False, schema=None)
    assert len(fault.value.findings) == 21
    assert fault.value.findings[-1].message == "and 980 more like these"


@given(st.dictionaries(st.sampled_from(["number", "note"]), st.text() | st.decimals() | st.dates() | st.none()))
def test_whatever_is_written_can_be_read_back(data: dict[str, Any]) -> None:
    root = {
        "name": "r",
        "children": [{"name": "a", "value": "number", "attributes": {"b": "note"}}, {"name": "c", "value": "note"}],
    }
    try:
        once = render(mapping(root), data, pretty=False, schema=None)
    except DocumentRejected:
        return  # with characters that XML cannot hold; see the test above
    assert once == render(mapping(root), data, pretty=False, schema=None)
    parsed = etree.fromstring(once)
    if isinstance(data.get("number"), str):
        assert (parsed.findtext("a") or "") == data["number"]
    if isinstance(data.get("note"), str):
        assert (parsed[0].get("b") or "") == data["note"]


@pytest.mark.parametrize(
    ("root", "why"),
    [
        ({"name": "x:r"}, "no namespace for the prefix 'x'"),
        ({"name": "r", "attributes": {"xmlns": "'urn:x'"}}, "declared in xml.namespaces"),
        ({"name": "r", "attributes": {"a b": "'x'"}}, "cannot be the name"),
        ({"name": "r", "each": "lines"}, "outermost"),
        ({"name": "r", "children": [{"name": "l", "each": "rows"}]}, "no table called 'rows'"),
        (
            {"name": "r", "children": [{"name": "l", "each": "lines", "children": [{"name": "m", "each": "lines"}]}]},
            "repeated again",
        ),
    ],
)
def test_a_tree_that_cannot_be_written_is_refused_when_the_mapping_loads(root: dict[str, Any], why: str) -> None:
    with pytest.raises(MappingFault, match=why):
        check_tree(mapping(root))


def test_a_long_invoice_is_written_in_milliseconds() -> None:
    columns = [f"c{index}" for index in range(13)]
    root = {
        "name": "r",
        "children": [{"name": "G", "each": "lines", "children": [{"name": c.upper(), "value": c} for c in columns]}],
    }
    long = mapping(root)
    data = {"lines": [dict.fromkeys(columns, Decimal("12345.67")) for _ in range(510)]}
    best = min(_seconds(lambda: render(long, data, pretty=False, schema=None)) for _ in range(5))
    assert best < 0.1, "about 10 ms on an idle machine; this only notices when it is another order of magnitude"


def _seconds(work: Any) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
