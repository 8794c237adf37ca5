"""A schema comes from outside: what it may be, and that no answer takes long to check."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from waybill.errors import Refused
from waybill_batches import wanted_fields
from waybill_batches.wanted_fields import WantedFields, misfit_of


def schema(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {}}, **members}


def parsed(found: Any) -> WantedFields:
    wanted = WantedFields.parse(json.dumps(found))
    assert wanted is not None
    return wanted


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"not": inner}
    return inner


DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}
EXPLODING = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)} | {"d60": {}}


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_is_wanted_of_an_empty_field(text: str) -> None:
    assert WantedFields.parse(text) is None


@pytest.mark.parametrize(
    "found",
    [
        schema(),
        schema(properties={"$ref": {"type": "string"}, "pattern": {"enum": [1]}}, required=["$ref"]),
        schema(properties={"a": {"$ref": "#/$defs/money"}}, **{"$defs": {"money": {"type": ["number", "null"]}}}),
        schema(properties={"a": {"$ref": "#/definitions/b"}}, definitions={"b": True}),
        schema(**{"$schema": "http://json-schema.org/draft-07/schema#"}),
        schema(**{"$schema": "https://json-schema.org/draft/2019-09/schema"}),
        schema(properties={"date": {"type": "string", "format": "date", "pattern": r"^\d{4}-"}}),
    ],
)
def test_ordinary_schemas_are_taken(found: dict[str, Any]) -> None:
    assert parsed(found).schema == found


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{", "form"),
        ("[]", "form"),
        ("true", "form"),
        ('{"type": "object", "properties": {"a": {"maximum": NaN}}}', "form"),
        ('{"type": "object", "properties": {"\\u0000": {}}}', "form"),
        ("[" * 100_000, "form"),
        (json.dumps(schema(description="x" * 17_000)), "form"),
        (json.dumps(schema(**nested(40))), "too_deep"),
        (json.dumps({"type": "array", "properties": {"a": {}}}), "no_fields"),
        (json.dumps({"type": "object"}), "no_fields"),
        (json.dumps(schema(properties={})), "no_fields"),
        (json.dumps(schema(properties={"a": {"type": "strung"}})), "invalid"),
        (json.dumps(schema(required="a")), "invalid"),
        (json.dumps(schema(**{"$schema": "http://json-schema.org/draft-04/schema#"})), "draft"),
        (json.dumps(schema(**DRAFT_07, **{"$defs": [1]})), "invalid"),
        (json.dumps(schema(**DRAFT_07, **{"$defs": {"a": {"type": "strung"}}})), "invalid"),
        (json.dumps(schema(properties={"a": {"$ref": "https://example.com/schema.json"}})), "reference"),
        (json.dumps(schema(properties={"a": {"$ref": "file:///etc/passwd"}})), "reference"),
        (json.dumps(schema(properties={"a": {"$ref": "#/properties/a"}})), "reference"),
        (json.dumps(schema(properties={"a": {"$ref": "#/$defs/missing"}})), "reference"),
        (json.dumps(schema(properties={"a": {"$ref": "#"}})), "reference"),
        (json.dumps(schema(**{"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}})), "recursive"),
        (json.dumps(schema(properties={"a": {"$ref": "#/$defs/d0"}}, **{"$defs": EXPLODING})), "too_large"),
        (json.dumps(schema(properties={"a": {"$id": "https://example.com/"}})), "keyword"),
        (json.dumps(schema(properties={"a": {"$dynamicRef": "#x"}})), "keyword"),
        (json.dumps(schema(properties={"a": {"pattern": "(?=a)b"}})), "pattern"),
        (json.dumps(schema(properties={"a": {"patternProperties": {r"(a)\1": {}}}})), "pattern"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(text: str, key: str) -> None:
    began = time.process_time()
    with pytest.raises(Refused) as raised:
        WantedFields.parse(text)
    assert raised.value.key == f"batches.schema.{key}"
    assert time.process_time() - began < 5, "no schema takes long to refuse"


@pytest.mark.parametrize(
    ("rule", "answer", "fits"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 50_000 + "b", False),
        ({"pattern": "^(a+)+$"}, "a" * 50_000, True),
        ({"uniqueItems": True}, [{"number": number} for number in range(20_000)], True),
        ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
        ({"patternProperties": {"^x_": {"type": "number"}}}, {"x_1": "one"}, False),
        ({"patternProperties": {"^x_": {"type": "number"}}}, {"y_1": "one"}, True),
        ({"format": "date"}, "2026-13-01", False),
        ({"format": "regex"}, "(" * 1000, True),
        ({"type": "number", "multipleOf": 0.01}, 1e308, None),
    ],
)
def test_no_answer_takes_long_to_check(rule: dict[str, Any], answer: Any, fits: bool | None) -> None:
    wanted = parsed(schema(properties={"a": rule}))
    began = time.process_time()
    why = wanted.misfit({"a": answer})
    assert time.process_time() - began < 5
    if fits is not None:
        assert (why is None) is fits


def test_a_reason_names_the_place_and_is_short() -> None:
    wanted = parsed(schema(properties={"lines": {"items": {"properties": {"net": {"type": "number"}}}}}))
    why = wanted.misfit({"lines": [{}, {"net": "x" * 5000}]})
    assert why is not None
    assert why.startswith("lines/1/net: ")
    assert len(why) <= 300


def test_the_digest_follows_the_meaning_and_not_the_writing() -> None:
    one, other = WantedFields.parse('{"type":"object","properties":{"a":{}}}'), parsed(schema())
    assert one is not None
    assert one.digest == other.digest != parsed(schema(required=["a"])).digest


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
rules = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "object", "array", "null", "boolean"]),
        "pattern": st.sampled_from(["^a", "b$", "a+b"]),
        "uniqueItems": st.booleans(),
        "patternProperties": st.just({"^a": {"type": "integer"}}),
        "enum": st.lists(json_values, min_size=1, max_size=3),
    },
)


OTHERS = (
    "$id",
    "$ref",
    "$schema",
    "const",
    "enum",
    "format",
    "multipleOf",
    "pattern",
    "required",
    "type",
    "uniqueItems",
)
KEYWORDS = st.sampled_from([*wanted_fields._ONE, *wanted_fields._LISTS, *wanted_fields._BY_NAME, *OTHERS])
WORDS = st.sampled_from(["object", "string", "#/$defs/a", "#/definitions/a", "#", "(", "a", *DRAFT_07.values()])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS | st.just("a"), inner, max_size=4),
    max_leaves=12,
)


@given(more=st.dictionaries(KEYWORDS, anything, max_size=4), answer=json_values)
def test_whatever_somebody_sends_is_refused_or_can_be_used(more: dict[str, Any], answer: Any) -> None:
    try:
        wanted = parsed({**schema(), **more})
    except Refused:
        return
    why = wanted.misfit(answer)
    assert why is None or len(why) <= 300


@given(rule=rules, answer=json_values)
def test_our_keywords_agree_with_the_librarys(rule: dict[str, Any], answer: Any) -> None:
    found = schema(properties={"a": rule})
    expected = Draft202012Validator(found).is_valid({"a": answer})
    assert (misfit_of(found, {"a": answer}) is None) is expected


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_a_number_that_postgres_cannot_store_is_refused(number: str) -> None:
    with pytest.raises(Refused):
        WantedFields.parse(f'{{"type": "object", "properties": {{"a": {{"maximum": {number}}}}}}}')
