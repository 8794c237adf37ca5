"""`waybill queue`: how much waits where, and holding it there."""

from __future__ import annotations

from support.clock import Clock
from support.command_line import Waybill
from support.engine import OTHER, one_job, some_jobs, start_worker, take
from waybill.db.database import Connection


async def test_every_queue_has_one_line(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    await some_jobs(hot, 3)
    await one_job(hot, OTHER, queue="night", delay=60.0)
    await take(hot, await start_worker(hot), 1)
    await clock.forward(3 * 86400 + 1800)
    ran = await waybill("queue", "stats")
    assert [line.split() for line in ran.lines] == [
        ["QUEUE", "QUEUED", "SCHEDULED", "RUNNING", "FAILED", "DEAD", "OLDEST", "STATUS"],
        ["default", "2", "0", "1", "0", "0", "3", "d", "open"],
        ["night", "0", "1", "0", "0", "0", "-", "open"],
    ]


async def test_the_json_counts_every_state(waybill: Waybill, hot: Connection) -> None:
    await some_jobs(hot, 2)
    await waybill("queue", "pause", "default", "--reason", "maintenance")
    (queue,) = (await waybill("queue", "stats", "--json")).json["queues"]
    assert queue["counts"] == {
        "scheduled": 0,
        "queued": 2,
        "running": 0,
        "succeeded": 0,
        "failed": 0,
        "dead_letter": 0,
        "cancelled": 0,
    }
    assert queue["paused_reason"] == "maintenance"
    assert queue["paused_at"] is not None
    assert queue["oldest_queued_at"] is not None


async def test_no_queues_yet(waybill: Waybill, database_url: str) -> None:
    ran = await waybill("queue", "stats")
    assert (ran.code, ran.out) == (0, "")
    assert "No queues yet" in ran.err


async def test_a_paused_queue_starts_nothing_until_it_is_resumed(waybill: Waybill, hot: Connection) -> None:
    await one_job(hot)
    worker = await start_worker(hot)
    paused = await waybill("queue", "pause", "default")
    assert (paused.code, paused.err) == (0, "")
    assert await take(hot, worker) == []
    assert (await waybill("queue", "resume", "default", "--json")).json == {
        "queue": "default",
        "paused": False,
        "was_paused": True,
    }
    assert len(await take(hot, worker)) == 1
    again = await waybill("queue", "resume", "default")
    assert (again.code, again.out) == (0, "Queue default was not paused.\n")


async def test_pausing_a_queue_nobody_uses_is_done_but_doubted(waybill: Waybill, hot: Connection) -> None:
    ran = await waybill("queue", "pause", "defualt")
    assert ran.code == 0
    assert "known are batches, convert, default" in ran.err
    assert (await waybill("queue", "pause", "No Such")).code == 2


async def test_the_backlog_says_how_many_workers_are_wanted_and_what_is_held(
    waybill: Waybill, hot: Connection, clock: Clock
) -> None:
    await some_jobs(hot, 1200)
    await one_job(hot, delay=10 * 86400.0)
    await some_jobs(hot, 2, queue="night")
    await waybill("queue", "pause", "night")
    await clock.forward(3 * 86400 + 1800)

    ran = await waybill("queue", "backlog")

    assert [" ".join(line.split()) for line in ran.lines] == [
        "wanted 2 workers with 10 slots each, to be done in 1 min",
        "queued 1,200 (the oldest for 3 d)",
        "running 0",
        "drained in never: no worker serves it",
        "held 2 in a paused queue, 1 scheduled for later",
    ]
    await start_worker(hot)
    ran = await waybill("queue", "backlog", "--queue", "default", "--kind", "work", "--slots", "1")
    assert "wanted      20 workers with 1 slot each" in ran.out
    assert "drained in  2 min" in ran.out


async def test_the_backlog_as_json(waybill: Waybill, hot: Connection) -> None:
    await some_jobs(hot, 60)
    found = (await waybill("queue", "backlog", "--drain-target", "2m", "--slots", "1", "--json")).json
    assert found.pop("oldest") is not None
    assert found == {
        "wanted": 1,
        "queued": 60,
        "running": 0,
        "waiting": 60,
        "seconds_to_drain": None,
        "held": {},
        "estimated": False,
    }
    assert (await waybill("queue", "backlog", "--drain-target", "0s")).code != 0
