"""Fan-out and fan-in over real worker processes: whatever dies, the parent runs to its end once."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from support import handlers
from support.engine import find_contradictions
from support.family_handlers import FAN_OUT, SUM_UP
from support.patience import eventually
from support.workers import StartWorker, WorkerProcess, all_ended, started_runs
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_family
from waybill_engine.control import cancel

LOADED = "support.handlers,support.family_handlers"


@pytest.mark.parametrize(
    ("pieces", "kills"), [(200, 3), pytest.param(10_000, 60, marks=[pytest.mark.heavy, pytest.mark.timeout(1800)])]
)
async def test_a_family_under_kill_9_runs_its_parent_once(
    connection: Connection, start_worker: StartWorker, pieces: int, kills: int
) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)
    chance = random.Random(seed)

    def one_more() -> WorkerProcess:
        return start_worker(worker_handlers=LOADED, worker_concurrency=4)

    workers = [one_more() for _ in range(3)]
    await enqueue(connection, NewJob(FAN_OUT, "acme", {"pieces": pieces, "seconds": 0.01}))

    for _ in range(kills):
        at_start = await ended_pieces(connection)

        async def moved(at_start: int = at_start) -> bool:
            done = await ended_pieces(connection)
            return done >= at_start + chance.randrange(1, pieces // kills) or done == pieces

        await eventually(moved, within=60)
        victim = chance.randrange(len(workers))
        workers[victim].kill()
        workers[victim] = one_more()

    await eventually(lambda: all_ended(connection), within=90 if pieces < 5_000 else 1200, every=0.1)

    # One parent, one effect of it, and when it ran every piece had ended.
    (parent,) = await connection.fetch("SELECT * FROM jobs WHERE kind = 'sum_up'")
    assert (parent["state"], parent["children"], parent["pending_children"]) == ("succeeded", pieces, 0)
    (effect,) = await connection.fetch("SELECT note FROM public.effects WHERE job_id = $1", parent["id"])
    assert json.loads(effect["note"]) == {"succeeded": pieces * 9 // 10, "failed": pieces // 10}
    assert parent["started_at"] >= await connection.fetchval(
        "SELECT max(finished_at) FROM jobs WHERE parent_id = $1", parent["id"]
    )
    ends = await connection.fetch("SELECT event FROM job_events WHERE job_id = $1", parent["id"])
    assert [row["event"] for row in ends].count("succeeded") == 1
    # And each piece's effect once.
    written = await connection.fetch("SELECT job_id, count(*) FROM public.effects GROUP BY job_id")
    assert len(written) == pieces * 5 // 10 + 1
    assert {row["count"] for row in written} == {1}
    assert await find_contradictions(connection) == []


async def ended_pieces(connection: Connection) -> int:
    return int(await connection.fetchval("SELECT count(*) FROM jobs WHERE kind = 'piece' AND finished_at IS NOT NULL"))


async def test_a_cancelled_family_stops_in_every_worker(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    for _ in range(2):
        start_worker(worker_handlers=LOADED, worker_concurrency=3)
    gated = [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(10)]
    family = await enqueue_family(connection, NewJob(SUM_UP, "acme"), gated)

    async def six_started() -> bool:
        return len(started_runs(gate)) == 6

    await eventually(six_started)
    result = await cancel(connection, family.parent.id)
    assert (result.below, len(result.stopping)) == (4, 6)
    await eventually(lambda: all_ended(connection))

    assert await connection.fetchval("SELECT count(*) FROM jobs WHERE state = 'cancelled'") == 11
    assert await connection.fetchval("SELECT count(*) FROM effects") == 0
    assert await find_contradictions(connection) == []
