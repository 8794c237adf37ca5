"""JSON is read exactly, written in one way, and refused with its place where it has none."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from passport.conftest import vectors
from waybill_passport.canonical import LARGEST, NotCanonical, canonical, exact, read
from waybill_passport.digests import sha256

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST, LARGEST) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


def test_the_example_of_the_notes() -> None:
    assert canonical(read('{"b":2,"a":1}')) == b'{"a":1,"b":2}'
    hashed = sha256(canonical({"b": 2, "a": 1})).hex()
    assert hashed == "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"


def test_the_vectors_of_rfc_8785() -> None:
    folder = vectors("jcs")
    inputs = sorted((folder / "input").iterdir())
    assert inputs
    for one in inputs:
        expected = (folder / "output" / one.name).read_bytes()
        assert rfc8785.dumps(json.loads(one.read_text("utf-8"))) == expected.strip(), one.name
        if one.name in ("values.json", "structures.json"):  # they have floats
            with pytest.raises(NotCanonical, match="no exact form"):
                canonical(read(one.read_bytes()))
        else:
            assert canonical(read(one.read_bytes())) == expected.strip(), one.name


@given(VALUES)
def test_reading_what_was_written_gives_it_back(value: Any) -> None:
    written = canonical(value)
    assert read(written) == value
    assert canonical(read(written)) == written


def test_decimals_keep_every_digit() -> None:
    found = read('{"weight": 12.340, "tiny": 1e-7, "big": [1.5E+3]}')
    assert found == {"weight": Decimal("12.340"), "tiny": Decimal("1E-7"), "big": [Decimal("1500")]}
    assert exact(found) == {"weight": "12.340", "tiny": "0.0000001", "big": ["1500"]}


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        ({"cells": [1, {"weight": 1.5}]}, "$.cells[1].weight", "no exact form"),
        ({"a": Decimal("1.5")}, "$.a", "no exact form"),
        ([2**53], "$[0]", "too large"),
        ({"a": "\ud800"}, "$.a", "half a character"),
        ({1: "a"}, "$", "a key is no text"),
        ({"a": b"bytes"}, "$.a", "bytes is not JSON"),
    ],
)
def test_what_has_no_canonical_form_is_refused_with_its_place(value: Any, path: str, why: str) -> None:
    with pytest.raises(NotCanonical) as refused:
        canonical(value)
    assert refused.value.path == path
    assert why in refused.value.why


@pytest.mark.parametrize(
    "text",
    ["{", "NaN", "[Infinity]", '{"a":1,"a":2}', "[" * 5000, "1" * 2000, "1e99999", b"\xff\xfe", "", '"\ud800'],
)
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(NotCanonical):
        read(text)


def test_deep_nesting_is_refused_and_not_followed() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    with pytest.raises(NotCanonical, match="nested deeper"):
        canonical(value)
