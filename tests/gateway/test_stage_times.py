"""Whatever a parser says about its stages, only known names and possible times come of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill_documents.stages import NAMES
from waybill_gateway.pool.stage_times import StageTime, stage_times

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["words", "xml", "x"]), inner),
    max_leaves=10,
)


def test_stages_are_placed_within_their_parse() -> None:
    note = {"stages": {"words": 500.0, "xml": 100}, "extents": {"words": [0.25, 1.5], "xml": [1.5, 9.0]}}
    assert stage_times(note, within=2.0) == [StageTime("words", 0.5, 0.25, 1.5), StageTime("xml", 0.1, 1.5, 2.0)]


def test_a_stage_without_a_place_begins_with_its_parse() -> None:
    assert stage_times({"stages": {"words": 500.0}}, within=2.0) == [StageTime("words", 0.5, 0.0, 0.5)]


@pytest.mark.parametrize(
    "stages", [{"Secret of a document": 1.0}, {"words": "1"}, {"words": -1}, {"words": float("nan")}, [1], None]
)
def test_what_is_no_stage_is_left_out(stages: Any) -> None:
    assert stage_times({"stages": stages}, within=2.0) == []


@given(stages=ANYTHING, extents=ANYTHING)
def test_nothing_that_a_parser_says_breaks_it(stages: Any, extents: Any) -> None:
    for stage in stage_times({"stages": stages, "extents": extents}, within=2.0):
        assert stage.name in NAMES
        assert 0 <= stage.begin <= stage.end <= 2.0
        assert stage.seconds >= 0
        json.dumps(stage, allow_nan=False)
