"""Label selectors mean what they mean everywhere in Kubernetes."""

from __future__ import annotations

import pytest

from waybill_operator.metrics_api.label_selector import BadSelector, LabelSelector

LABELS = {"pool": "heavy"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("  ", True),
        ("pool=heavy", True),
        ("pool==heavy", True),
        (" pool = heavy ", True),
        ("pool=light", False),
        ("pool!=heavy", False),
        ("pool!=light", True),
        ("pool in (light, heavy)", True),
        ("pool in (light)", False),
        ("pool notin (light,heavy)", False),
        ("pool notin (light)", True),
        ("pool", True),
        ("!pool", False),
        ("other", False),
        ("!other", True),
        ("other!=x", True),
        ("other notin (x)", True),
        ("other=x", False),
        ("pool=", False),
        ("pool=heavy,pool!=light", True),
        ("pool in (heavy,light),pool!=heavy", False),
        ("example.com/pool=heavy", False),
    ],
)
def test_a_selector_matches_as_in_kubernetes(text: str, matches: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) == matches


@pytest.mark.parametrize(
    "text",
    ["pool=heavy,", ",", "pool in heavy", "pool in (a", "pool in (a))", "=x", "pool>3", "pool=a b", "pool=-a", "(a)"],
)
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(BadSelector, match="cannot be read"):
        LabelSelector.parse(text)


def test_a_selector_is_bounded() -> None:
    with pytest.raises(BadSelector, match="characters"):
        LabelSelector.parse("a" * 5000)
    with pytest.raises(BadSelector):
        LabelSelector.parse("," * 4000)
