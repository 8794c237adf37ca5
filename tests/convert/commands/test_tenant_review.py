"""`waybill tenant review`: an operator says when a person has to look at a tenant's results first."""

from __future__ import annotations

import json

from support.command_line import Waybill
from waybill.db.database import Connection


async def test_thresholds_are_set_shown_and_taken_back(waybill: Waybill, hot: Connection) -> None:
    nothing = await waybill("tenant", "review", "acme", WAYBILL_REVIEW_BELOW="40")
    assert (nothing.code, nothing.out) == (0, "all mappings  default\n")
    assert "WAYBILL_REVIEW_BELOW, which is 40 here" in nothing.err
    await waybill("tenant", "review", "acme", "--below", "0")
    said = await waybill("tenant", "review", "acme", "--below", "90", "--mapping", "some_v1")
    assert [line.split(maxsplit=1) for line in said.lines] == [
        ["some_v1", "below 90"],
        ["all", "other mappings  never"],
    ]
    assert (await waybill("tenant", "review", "acme", "--json")).json == {
        "tenant": "acme",
        "below": 0,
        "mappings": {"some_v1": 90},
    }
    await waybill("tenant", "review", "acme", "--below", "default", "--mapping", "some_v1")
    assert (await waybill("tenant", "review", "acme", "--json")).json["mappings"] == {}
    assert (await waybill("tenant", "review", "globex", "--json")).json["below"] is None
    told = await hot.fetch("SELECT detail FROM audit_events WHERE action = 'tenant.review_changed' ORDER BY at, id")
    assert [json.loads(row["detail"]) for row in told] == [
        {"below": 0, "mapping": None},
        {"below": 90, "mapping": "some_v1"},
        {"below": None, "mapping": "some_v1"},
    ]


async def test_what_is_no_confidence_is_refused(waybill: Waybill, hot: Connection) -> None:
    for wrong in ("101", "-1", "80.5", "high", "٨٠", "9" * 5000):
        said = await waybill("tenant", "review", "acme", f"--below={wrong}")
        assert (said.code, said.out) == (2, "")
        assert "from 0 to 100" in said.err
    assert (await waybill("tenant", "review", "acme", "--mapping", "some_v1")).code == 2
    assert (await waybill("tenant", "review", "acme", "--below", "80", "--mapping", "a" * 201)).code == 1
    assert await hot.fetchval("SELECT count(*) FROM review_thresholds") == 0


async def test_the_help_names_it(waybill: Waybill) -> None:
    assert "review" in (await waybill("tenant", "--help")).out
