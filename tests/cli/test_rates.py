"""`waybill rates`: limiting how often jobs start."""

from __future__ import annotations

from support.command_line import Waybill
from support.engine import some_jobs, start_worker, take
from waybill.db.database import Connection


async def test_a_rate_holds_from_the_next_claim_on_until_it_is_lifted(waybill: Waybill, hot: Connection) -> None:
    await some_jobs(hot, 5)
    worker = await start_worker(hot)
    said = await waybill("rates", "set", "2", "--per", "3600", "--burst", "2", "--tenant", "acme")
    assert (said.code, said.out) == (0, "At most 2 jobs of tenant acme start in 3,600 seconds from now on.\n")
    assert len(await take(hot, worker)) == 2
    assert (await waybill("rates", "ls", "--json")).json == {
        "rates": [{"tenant": "acme", "kind": None, "most": 2, "seconds": 3600.0, "burst": 2, "open_for": 0}]
    }
    lines = [line.split() for line in (await waybill("rates", "ls")).lines]
    assert lines == [
        ["TENANT", "KIND", "MOST", "SECONDS", "BURST", "OPEN", "FOR"],
        ["acme", "any", "2", "3,600", "2", "0"],
    ]
    lifted = await waybill("rates", "rm", "--tenant", "acme")
    assert (lifted.code, lifted.out) == (0, "Jobs of tenant acme start as often as they can.\n")
    assert len(await take(hot, worker)) == 3


async def test_a_rate_set_again_is_changed_and_a_lifted_one_is_not_listed(waybill: Waybill, hot: Connection) -> None:
    await waybill("rates", "set", "5", "--kind", "work")
    changed = await waybill("rates", "set", "50", "--kind", "work", "--json")
    assert changed.json == {"tenant": None, "kind": "work", "most": 50, "seconds": 1.0, "burst": 5}
    assert len((await waybill("rates", "ls", "--json")).json["rates"]) == 1
    assert (await waybill("rates", "rm", "--kind", "work", "--json")).json["most"] is None
    ran = await waybill("rates", "ls")
    assert (ran.code, ran.out) == (0, "")
    assert "waybill rates set" in ran.err


async def test_what_makes_no_rate_is_refused(waybill: Waybill, database_url: str) -> None:
    nobody = await waybill("rates", "set", "2")
    assert nobody.code == 1
    assert "needs a tenant, a kind, or both" in nobody.err
    assert (await waybill("rates", "set", "0", "--kind", "work")).code == 2
    assert (await waybill("rates", "set", "2", "--burst", "3", "--kind", "work")).code == 1
    missing = await waybill("rates", "rm", "--kind", "work")
    assert missing.code == 1
    assert "no rate of jobs of kind work" in missing.err
