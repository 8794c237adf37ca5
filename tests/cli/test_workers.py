"""`waybill workers`: who runs jobs, and who has not been heard from."""

from __future__ import annotations

from support.clock import Clock
from support.command_line import Waybill
from support.engine import TTL, running_job, start_worker
from waybill.db.database import Connection
from waybill_engine.lease import stop


async def test_workers_at_work_are_listed_with_their_load(waybill: Waybill, hot: Connection) -> None:
    busy, _ = await running_job(hot)
    stopped = await start_worker(hot)
    await stop(hot, stopped.id)
    ran = await waybill("workers", "ls")
    assert [line.split()[:3] for line in ran.lines] == [["NAME", "STATE", "RUNNING"], [busy.name, "active", "1/10"]]
    everyone = await waybill("workers", "ls", "--all", "--json")
    assert {worker["name"]: worker["state"] for worker in everyone.json["workers"]} == {
        busy.name: "active",
        stopped.name: "stopped",
    }
    assert [worker["running"] for worker in everyone.json["workers"] if worker["name"] == busy.name] == [1]


async def test_a_worker_whose_lease_ran_out_is_silent(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    worker = await start_worker(hot)
    await clock.forward(TTL + 1)
    assert (await waybill("workers", "ls")).lines[1].split()[:2] == [worker.name, "silent"]
    assert (await waybill("workers", "ls", "--json")).json["workers"][0]["lease_expired"] is True


async def test_no_workers(waybill: Waybill, database_url: str) -> None:
    ran = await waybill("workers", "ls")
    assert (ran.code, ran.out) == (0, "")
    assert "`make up`" in ran.err
