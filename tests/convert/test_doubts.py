"""Which values of a record are in doubt, and whose threshold applies. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from waybill_convert.doubts import EVERY_MAPPING, NEVER, Doubts, KnownThresholds, doubtful, look


def origin(confidence: int, raw: str = "printed") -> dict[str, Any]:
    return {"rule": "fields.x", "raw": raw, "confidence": confidence}


def record(own: int | None = None, **more: Any) -> dict[str, Any]:
    """A number of which we are sure, and a net, a remark and a line's amount of which we are not."""
    fields = {"number": origin(95), "net": origin(70), "remark": origin(0), "vat": origin(30, raw="")}
    return {
        "mapping": {"name": "some_v1"},
        "provenance": {"fields": fields, "tables": {"lines": [{"amount": origin(95)}, {"amount": origin(75)}]}},
        "review": {"below": own, "essential": ["number", "net", "lines.amount", "vat"], "disproved": [], **more},
    }


def test_essential_values_below_the_threshold_are_in_doubt() -> None:
    assert doubtful(record(), 96) == ["number", "net", "lines[0].amount", "lines[1].amount"]
    assert doubtful(record(), 95) == ["net", "lines[1].amount"]
    assert doubtful(record(), 75) == ["net"], "what has exactly the threshold's confidence is not in doubt"
    assert doubtful(record(), 70) == []


def test_what_was_not_read_counts_if_a_check_disproves_it_and_nothing_else_is_in_doubt() -> None:
    assert doubtful(record(disproved=["vat"]), 70) == ["vat"]
    assert doubtful(record(disproved=["vat"]), 75) == ["net"]
    assert doubtful(record(disproved=["vat"]), 30) == []


def test_without_a_word_on_what_is_essential_everything_is() -> None:
    made = record()
    del made["review"]  # as by a gateway of release 0.1.0
    assert doubtful(made, 75) == ["net", "remark"]


@pytest.mark.parametrize(
    ("tenant", "own", "default", "below"),
    [
        ({}, None, 0, 0),
        ({}, None, 40, 40),
        ({}, 50, 40, 50),
        ({}, 0, 40, 0),
        ({EVERY_MAPPING: 60}, 50, 40, 60),
        ({EVERY_MAPPING: 0}, 50, 40, 0),
        ({"some_v1": 70, EVERY_MAPPING: 60}, 50, 40, 70),
        ({"some_v1": 0, EVERY_MAPPING: 60}, 50, 40, 0),
        ({"other_v1": 70}, 50, 40, 50),
        ({"other_v1": 70}, None, 40, 40),
    ],
)
def test_what_is_said_more_closely_counts_more(
    tenant: dict[str, int], own: int | None, default: int, below: int
) -> None:
    """The tenant's for this mapping, the tenant's for all, the mapping's own, the setting; and 0 is never."""
    assert KnownThresholds(default, tenant).below("some_v1", own) == below


def test_the_record_names_what_is_in_doubt() -> None:
    made = record(75)
    assert look(made, NEVER) == Doubts(75, ["net"])
    assert made["review"] == {
        "below": 75,
        "essential": ["number", "net", "lines.amount", "vat"],
        "disproved": [],
        "doubts": ["net"],
    }
    sure = record(70)
    assert look(sure, NEVER) is None
    assert sure["review"]["doubts"] == []
    never = record()
    assert look(never, NEVER) is None
    assert "doubts" not in never["review"]


def test_a_job_names_only_the_first() -> None:
    paths = [f"lines[{index}].amount" for index in range(2000)]
    assert Doubts(80, paths).brief() == {"below": 80, "count": 2000, "values": paths[:20]}
