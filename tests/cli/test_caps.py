"""`waybill caps`: limiting what runs at once."""

from __future__ import annotations

from support.command_line import Waybill
from support.engine import some_jobs, start_worker, take
from waybill.db.database import Connection


async def test_a_cap_holds_from_the_next_claim_on_until_it_is_lifted(waybill: Waybill, hot: Connection) -> None:
    await some_jobs(hot, 5)
    worker = await start_worker(hot)
    said = await waybill("caps", "set", "2", "--tenant", "acme")
    assert (said.code, said.out) == (0, "At most 2 jobs of tenant acme run at once from now on.\n")
    assert len(await take(hot, worker)) == 2
    assert (await waybill("caps", "ls", "--json")).json == {
        "caps": [{"tenant": "acme", "kind": None, "most": 2, "running": 2}]
    }
    lines = [line.split() for line in (await waybill("caps", "ls")).lines]
    assert lines == [["TENANT", "KIND", "MOST", "RUNNING"], ["acme", "any", "2", "2"]]
    lifted = await waybill("caps", "rm", "--tenant", "acme")
    assert (lifted.code, lifted.out) == (0, "Jobs of tenant acme are no longer capped.\n")
    assert len(await take(hot, worker)) == 3


async def test_a_cap_set_again_is_changed(waybill: Waybill, hot: Connection) -> None:
    await waybill("caps", "set", "1", "--kind", "work", "--tenant", "acme")
    changed = await waybill("caps", "set", "0", "--kind", "work", "--tenant", "acme", "--json")
    assert changed.json == {"tenant": "acme", "kind": "work", "most": 0}
    assert len((await waybill("caps", "ls", "--json")).json["caps"]) == 1


async def test_without_caps_the_list_says_how_to_set_one(waybill: Waybill, database_url: str) -> None:
    ran = await waybill("caps", "ls")
    assert (ran.code, ran.out) == (0, "")
    assert "waybill caps set" in ran.err


async def test_what_makes_no_cap_is_refused(waybill: Waybill, database_url: str) -> None:
    nobody = await waybill("caps", "set", "2")
    assert nobody.code == 1
    assert "needs a tenant, a kind, or both" in nobody.err
    assert (await waybill("caps", "set", "2", "--kind", "No Such")).code == 1
    assert (await waybill("caps", "set", "-1", "--kind", "work")).code == 2
    missing = await waybill("caps", "rm", "--kind", "work")
    assert missing.code == 1
    assert "no cap on jobs of kind work" in missing.err
