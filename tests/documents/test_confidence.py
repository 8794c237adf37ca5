"""The confidence of a value follows from how it was found and from the checks, as in `docs/mappings.md`."""

from __future__ import annotations

from typing import Any

import pytest

from support.pages import extract_pages, page, table
from waybill_documents.checks import check
from waybill_documents.computed_values import compute
from waybill_documents.confidence import judge
from waybill_documents.mapping.model import Mapping
from waybill_documents.values import Extracted

FIELDS: dict[str, Any] = {
    "net": {"type": "decimal", "label": "Net"},
    "vat": {"type": "decimal", "label": "VAT"},
    "total": {"type": "decimal", "label": "Total"},
    "off": {"type": "decimal", "label": "Off", "default": "0"},
}
PRINTED = "Net : 100\nVAT : 20\nTotal : 120"


def judged(printed: str = PRINTED, *, fields: dict[str, Any] | None = None, **more: Any) -> Extracted:
    given = {
        "format": 1,
        "name": "t",
        "title": "T",
        "locale": {"base": "en"},
        "fields": FIELDS | (fields or {}),
        **more,
    }
    mapping = Mapping.model_validate(given)
    extracted = extract_pages(mapping, page(*table(printed.split("\n")))).extracted
    compute(mapping, extracted)
    judge(mapping, extracted, check(mapping, extracted, extracted.carries))
    return extracted


def sure(extracted: Extracted) -> dict[str, int]:
    return {name: value.confidence for name, value in extracted.fields.items()}


def test_values_that_equal_what_others_make_are_proved() -> None:
    found = sure(judged(checks={"sum": {"expect": "net + vat == total"}}))
    assert (found["net"], found["vat"], found["total"]) == (100, 100, 100)


def test_one_of_several_that_were_found_is_settled_and_not_proved() -> None:
    twice = f"{PRINTED}\nTotal : 90"
    assert sure(judged(twice))["total"] == 75
    found = sure(judged(twice, checks={"sum": {"expect": "net + vat == total"}}))
    assert (found["net"], found["vat"], found["total"]) == (100, 100, 90)


@pytest.mark.parametrize(
    "expect", ["vat <= total", "net != vat", "net > 0", "not (net == vat)", "net == 1 or vat <= total"]
)
def test_what_is_only_plausible_is_not(expect: str) -> None:
    found = sure(judged(checks={"plausible": {"expect": expect}}))
    assert (found["net"], found["vat"], found["total"]) == (95, 95, 95)


def test_a_check_that_does_not_hold_outweighs_one_that_does() -> None:
    found = sure(judged(checks={"sum": {"expect": "net + vat == total"}, "low": {"expect": "vat > net"}}))
    assert (found["net"], found["vat"], found["total"]) == (30, 30, 100)


def test_a_default_is_never_proved() -> None:
    assert sure(judged(checks={"sum": {"expect": "net + vat - off == total"}}))["off"] == 60


def test_computed_values_follow_their_sources() -> None:
    computed = {"gross": "net + vat", "less": "gross - off", "fixed": "12"}
    found = sure(judged(computed=computed, checks={"sum": {"expect": "net + vat == total"}}))
    assert (found["gross"], found["less"], found["fixed"]) == (100, 60, 100)
    found = sure(judged(computed=computed, checks={"sum": {"expect": "net + vat == total + 1"}}))
    assert (found["gross"], found["less"]) == (30, 30)
    assert sure(judged(computed=computed, checks={"big": {"expect": "gross > 500"}}))["gross"] == 30


def test_the_last_of_several_is_as_doubtful_as_the_first() -> None:
    for pick in ("first", "last"):
        fields = {"total": FIELDS["total"] | {"pick": pick}}
        assert sure(judged(f"{PRINTED}\nTotal : 121", fields=fields))["total"] == 75
        assert sure(judged(f"{PRINTED}\nTotal : 120", fields=fields))["total"] == 95


def test_cells() -> None:
    columns = {
        "no": {"header": "No", "type": "integer"},
        "off": {"header": "Off", "type": "decimal", "default": "0"},
        "sum": {"header": "Sum", "type": "decimal"},
    }
    lines = {"columns": columns, "row": {"begins": "no"}, "end": "Net", "computed": {"twice": "2 * sum", "all": "off"}}
    printed = f"No     Off     Sum\n1       5       60\n2       -       20\n3               20\n{PRINTED}"
    rows = judged(
        printed,
        tables={"lines": lines},
        checks={"running": {"expect": "running(lines.no)"}, "sum": {"expect": "sum(lines.sum) == net"}},
    ).tables["lines"]
    assert [row["no"].confidence for row in rows] == [100, 100, 100]
    assert [row["off"].confidence for row in rows] == [95, 95, 60]
    assert [row["all"].confidence for row in rows] == [95, 95, 60]
    assert [(row["sum"].confidence, row["twice"].confidence) for row in rows] == [(100, 100)] * 3
