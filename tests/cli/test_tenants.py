"""`waybill tenant` and `waybill jobs prioritise`: who goes first, by an operator's word."""

from __future__ import annotations

from support.command_line import Waybill
from support.engine import WORK, events, one_job, start_worker, take
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue


async def test_a_weight_is_kept_and_listed(waybill: Waybill, hot: Connection) -> None:
    nobody = await waybill("tenant", "ls")
    assert (nobody.code, nobody.out) == (0, "")
    said = await waybill("tenant", "weight", "acme", "2.5")
    assert (said.code, said.out) == (0, "Tenant acme has weight 2.5 from now on.\n")
    assert (await waybill("tenant", "ls", "--json")).json == {
        "tenants": [{"tenant": "acme", "weight": 2.5, "top_priority": 0, "hold_at": None}]
    }
    assert (await waybill("tenant", "weight", "acme", "0")).code == 1
    assert (await waybill("tenant", "weight", "acme", "nan")).code == 1


async def test_a_priority_is_granted_and_taken_back(waybill: Waybill, hot: Connection) -> None:
    assert (await waybill("tenant", "priority", "acme", "3")).out == "Tenant acme may use priorities up to 3.\n"
    await enqueue(hot, NewJob(WORK, "acme", priority=3))
    await waybill("tenant", "priority", "acme", "0")
    assert (await waybill("tenant", "ls", "--json")).json["tenants"][0]["top_priority"] == 0


async def test_an_operator_puts_a_waiting_job_first(waybill: Waybill, hot: Connection) -> None:
    first, second = await one_job(hot), await one_job(hot)
    said = await waybill("jobs", "prioritise", second, "--to", "5")
    assert (said.code, said.out) == (0, f"{second} has priority 5 now\n")
    worker = await start_worker(hot)
    assert [lease.id for lease in await take(hot, worker)] == [second, first]
    assert await events(hot, second) == ["prioritised"]
    running = await waybill("jobs", "prioritise", second, "--to", "1")
    assert running.code != 0
    assert "Only jobs that wait" in running.err
