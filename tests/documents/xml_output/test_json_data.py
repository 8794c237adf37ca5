"""JSON is read as complete, exact, typed data, or refused with a finding for each wrong value."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill_documents.computed_values import compute
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.mapping.model import Mapping
from waybill_documents.provenance import data_of
from waybill_documents.values import Extracted
from waybill_documents.xml_output import extracted_from_json, read_json, render

_MAPPING = Mapping.model_validate(
    {
        "format": 1,
        "name": "m",
        "title": "M",
        "locale": {"base": "id"},
        "fields": {
            "number": {"pattern": "(.*)", "required": True},
            "date": {"pattern": "(.*)", "type": "date"},
            "tin": {"pattern": "(.*)", "type": "digits"},
            "pages": {"pattern": "(.*)", "type": "integer"},
            "discount": {"pattern": "(.*)", "type": "decimal", "default": "1.000,50"},
            "country": {"constant": "IDN"},
        },
        "tables": {
            "lines": {
                "columns": {
                    "name": {"required": True},
                    "qty": {"type": "decimal"},
                    "price": {"type": "decimal"},
                    "unit": {},
                },
                "row": {"begins": "name"},
                "notes": {"heading": "^== (.*)"},
                "computed": {"amount": "round(qty * price, 2)", "unit_code": "lookup('units', unit)"},
                "max_rows": 3,
            }
        },
        "lookups": {"units": {"pcs": "UM.0021"}},
        "computed": {"total": "sum(lines.amount)"},
        "xml": {"root": {"name": "r", "value": "total"}},
    }
)

_LINE = {"name": "a", "qty": "3", "price": "12500.00", "unit": "pcs"}
_GOOD: dict[str, Any] = {
    "number": "2508070002",
    "date": "2025-08-07",
    "tin": "0715420659018000",
    "pages": 17,
    "lines": [_LINE],
}


def read(document: dict[str, Any]) -> Extracted:
    """The document as in a conversion: typed, with computed values."""
    extracted = extracted_from_json(_MAPPING, document)
    if findings := compute(_MAPPING, extracted):
        raise DocumentRejected(findings[0].code, findings[0].says, tuple(findings))
    return extracted


def completed(document: dict[str, Any]) -> dict[str, Any]:
    return read(document).data()


def faults(document: dict[str, Any]) -> list[tuple[FaultCode, str | None, str]]:
    with pytest.raises(DocumentRejected) as fault:
        completed(document)
    return [(finding.code, finding.path, finding.message) for finding in fault.value.findings]


def test_values_get_the_types_of_the_mapping_and_computed_ones_are_made() -> None:
    assert completed(_GOOD) == {
        "number": "2508070002",
        "date": date(2025, 8, 7),
        "tin": "0715420659018000",
        "pages": 17,
        "discount": Decimal("1000.50"),
        "country": "IDN",
        "lines": [
            {
                "name": "a",
                "qty": Decimal(3),
                "price": Decimal("12500.00"),
                "unit": "pcs",
                "amount": Decimal("37500.00"),
                "unit_code": "UM.0021",
                "heading": None,
            }
        ],
        "total": Decimal("37500.00"),
    }


def test_what_was_answered_can_be_sent_back() -> None:
    data = completed(_GOOD)
    answer = json.loads(json.dumps(data_of(read(_GOOD))))
    assert answer["total"] == "37500.00"
    assert answer["date"] == "2025-08-07"
    assert completed(answer) == data
    whole = {"mapping": {"name": _MAPPING.name}, "data": answer, "provenance": {}, "checks": []}
    assert completed(whole) == data
    assert b"<r>37500.00</r>" in render(_MAPPING, data, pretty=False, schema=None)


@pytest.mark.parametrize("made_by", [{"name": "other_v1", "sha256": "x"}, "other_v1", {"name": 7}])
def test_an_answer_of_another_mapping_is_not_taken(made_by: Any) -> None:
    with pytest.raises(DocumentRejected, match="made by the mapping") as fault:
        extracted_from_json(_MAPPING, {"mapping": made_by, "data": _GOOD})
    assert fault.value.code is FaultCode.NOT_RECOGNISED


def test_texts_are_without_the_spaces_around_them() -> None:
    extracted = extracted_from_json(_MAPPING, {**_GOOD, "number": " 2508070002\n", "discount": "  "})
    assert extracted.fields["number"].value == "2508070002"
    assert extracted.fields["discount"].value == Decimal("1000.50"), "blank is empty, so its default stands for it"
    assert faults({**_GOOD, "number": " "})[0][0] is FaultCode.FIELD_MISSING


def test_computed_values_are_not_believed() -> None:
    assert completed({**_GOOD, "total": "1.00"})["total"] == Decimal("37500.00")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("number", 2508070002, "'number' must be a text in quotes, not 2508070002"),
        ("number", ["x"], "'number' must be a text in quotes, not a list"),
        ("date", "7 Agustus 2025", "'date' must be a date such as \"2025-08-07\", not 7 Agustus 2025"),
        ("date", "2025-02-30", "'date' is not a day in the calendar: 2025-02-30"),
        ("tin", "07.154", "'tin' must be digits only, not '07.154'"),
        ("tin", "０７", "'tin' must be digits only, not '０７'"),
        ("pages", "1.5", "'pages' must be a whole number, not 1.5"),
        ("pages", True, "'pages' must be a number such as \"37500.00\", not True"),
        ("discount", "1.000,50", "'discount' must be a number such as \"37500.00\", not 1.000,50"),
        ("discount", {"a": 1}, "'discount' must be a number such as \"37500.00\", not an object"),
        ("discount", "NaN", "'discount' must be a number such as \"37500.00\", not NaN"),
        ("discount", "1e999999999", "'discount' must be a number such as \"37500.00\", not 1e999999999"),
        ("lines", {"name": "a"}, "'lines' must be a list of lines"),
    ],
)
def test_a_wrong_type_is_a_finding_in_words(name: str, value: Any, why: str) -> None:
    assert faults({**_GOOD, name: value}) == [(FaultCode.BAD_VALUE, name, why)]


def test_all_that_is_wrong_is_said_at_once() -> None:
    document = {"lines": [{**_LINE, "qty": "three"}, {"qty": "1"}, 5], "numbr": "1", "pages": []}
    assert faults(document) == [
        (FaultCode.BAD_VALUE, "numbr", "the mapping has nothing called 'numbr'; did you mean 'number'?"),
        (FaultCode.FIELD_MISSING, "number", "'number' is missing"),
        (FaultCode.BAD_VALUE, "pages", "'pages' must be a number such as \"37500.00\", not a list"),
        (FaultCode.BAD_VALUE, "lines[0].qty", "line 1: 'qty' must be a number such as \"37500.00\", not three"),
        (FaultCode.FIELD_MISSING, "lines[1].name", "line 2: 'name' is missing"),
        (FaultCode.BAD_VALUE, "lines[2]", "line 3 of 'lines' must be an object"),
    ]


def test_an_empty_text_is_no_value() -> None:
    assert faults({**_GOOD, "number": ""}) == [(FaultCode.FIELD_MISSING, "number", "'number' is missing")]
    data = completed({**_GOOD, "date": "", "discount": ""})
    assert (data["date"], data["discount"]) == (None, Decimal("1000.50"))


def test_an_unknown_unit_names_its_line() -> None:
    ((code, path, message),) = faults({**_GOOD, "lines": [_LINE, {**_LINE, "unit": "zak"}]})
    assert code is FaultCode.UNKNOWN_LOOKUP
    assert path is not None
    assert path.startswith("lines[1]")
    assert "zak" in message


def test_tables_are_bounded_and_may_be_required() -> None:
    assert faults({**_GOOD, "lines": [_LINE] * 4})[0][0] is FaultCode.TOO_MANY_ROWS
    assert faults({**_GOOD, "lines": []})[0][0] is FaultCode.TABLE_MISSING


def test_a_note_is_a_row_of_its_own() -> None:
    extracted = extracted_from_json(_MAPPING, {**_GOOD, "lines": [{"heading": "Spare parts"}, _LINE]})
    assert extracted.tables["lines"][0]["heading"].value == "Spare parts"
    assert extracted.tables["lines"][0]["name"].value is None


def test_numbers_stay_exact() -> None:
    document = read_json(b'{"n": 0.1, "m": 12345678901234567890.12, "i": 3}')
    assert document == {"n": Decimal("0.1"), "m": Decimal("12345678901234567890.12"), "i": 3}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b"null",
        b'"text"',
        b"{",
        b'{"a": 1} x',
        b"\xff\xfe{}",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e400}',
        b'{"a": 1e999999999999999999999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": 1, "a": 2}',
        b'{"a": ' * 30 + b"1" + b"}" * 30,
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": ' + b"[" * 1_000_000,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_what_is_not_a_json_document_or_is_a_bomb_is_unreadable(body: bytes) -> None:
    with pytest.raises(DocumentRejected) as fault:
        read_json(body)
    assert fault.value.code is FaultCode.UNREADABLE
    assert len(fault.value.message) < 300


def test_a_document_has_a_largest_size() -> None:
    with pytest.raises(DocumentRejected):
        read_json(b'{"a": "' + b"x" * 100 + b'"}', largest=50)


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*_GOOD, "discount", "country", "total", "x"]), _ANYTHING))
def test_any_document_is_data_or_a_fault(document: dict[str, Any]) -> None:
    try:
        data = completed(document)
    except DocumentRejected as fault:
        assert fault.findings  # noqa: PT017 - most are faults, and a fault is fine
    else:
        assert set(data) == {*_MAPPING.fields, "lines", "total"}
