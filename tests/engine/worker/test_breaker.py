"""One breaker for three processes: it opens once, blocks at no cost, lets the configured probes through, and closes.

Nobody polls here: what workers learn in time, they were told, or knew when to look.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.breakers import CONVERTER, breaker_events, fail, standing, state_of
from support.engine import count, events, find_contradictions, some_jobs
from support.handlers import CONVERT
from support.patience import eventually
from support.workers import StartWorker, WorkerProcess, all_ended, counts, started_runs
from waybill.db.database import Connection
from waybill_engine.breaker import BreakerPolicy
from waybill_engine.breaker_control import reset, trip

A_SECOND = timedelta(seconds=1)
SOONER_THAN_A_POLL = timedelta(seconds=10)
"""Workers here poll every 30 s, so what starts sooner was woken. On an idle machine it takes less than one second."""

# Every run's start: those that have ended, and those that go on.
_STARTS = """
SELECT started_at FROM (
    SELECT job_id, lease_token, started_at FROM job_events WHERE started_at IS NOT NULL
     UNION
    SELECT id, lease_token, started_at FROM jobs WHERE started_at IS NOT NULL
) AS runs
 WHERE started_at > $1::timestamptz AND started_at < COALESCE($2::timestamptz, 'infinity')
 ORDER BY started_at
"""


async def fleet(connection: Connection, start_worker: StartWorker, **settings: object) -> list[WorkerProcess]:
    """Three workers that are at work."""
    workers = [start_worker(poll_interval=30, **settings) for _ in range(3)]

    async def all_active() -> bool:
        return bool(await connection.fetchval("SELECT count(*) = 3 FROM workers WHERE state = 'active'"))

    await eventually(all_active)
    return workers


async def now(connection: Connection) -> datetime:
    """By the database's clock. Whatever had been committed when this was asked, a later transaction sees."""
    moment: datetime = await connection.fetchval("SELECT now()")
    return moment


async def starts(connection: Connection, after: datetime, before: datetime | None = None) -> list[datetime]:
    """Between these moments, not at them: the first probes start in the very transaction that half-opens it."""
    return [row[0] for row in await connection.fetch(_STARTS, after, before)]


async def happened(connection: Connection, event: str) -> datetime | None:
    """When this last happened to the breaker."""
    at: datetime | None = await connection.fetchval(
        "SELECT max(at) FROM breaker_events WHERE name = $1 AND event = $2", CONVERTER, event
    )
    return at


def is_now(connection: Connection, state: str) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return await state_of(connection) == state

    return look


def at_gate(gate: Path, runs: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return len(started_runs(gate)) >= runs

    return look


def nothing_runs(connection: Connection) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return await count(connection, "state = 'running'") == 0

    return look


async def opened(connection: Connection, seconds: float) -> None:
    """The breaker opens, without any job's doing."""
    assert await fail(connection, policy=BreakerPolicy(open_for=seconds))


async def all_succeeded_at_no_cost(connection: Connection, jobs: int) -> None:
    assert await counts(connection) == {"succeeded": jobs}
    assert await count(connection, "attempts + crashes > 0") == 0
    assert await find_contradictions(connection) == []


async def test_it_opens_once_and_holds_and_costs_nobody_anything(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    down, early, late = tmp_path / "down", tmp_path / "early", tmp_path / "late"
    down.touch()
    early.mkdir()
    late.mkdir()
    await fleet(connection, start_worker, worker_concurrency=8, breaker_open=3)
    await some_jobs(connection, 12, CONVERT, payload={"down": str(down), "gate": str(early)})
    await some_jobs(connection, 48, CONVERT, payload={"down": str(down), "gate": str(late)})
    await eventually(at_gate(late, 12))
    assert len(started_runs(early) + started_runs(late)) == 24, "every slot of the fleet is taken"

    (early / "open").touch()
    await eventually(is_now(connection, "open"))
    seen = await now(connection)
    untouched = await connection.fetch("SELECT id FROM jobs WHERE lease_token = 0")
    assert len(untouched) >= 24, "no more started than there are slots"
    breaker = await standing(connection)
    (late / "open").touch()  # what was under way when it opened is let down now
    await eventually(nothing_runs(connection))
    for gate in (early, late):
        (gate / "open").unlink()  # and probes are held back
    # What was let down before it opened could not know how long that would last.
    too_soon = f"""state = 'scheduled' AND run_at <= (SELECT open_until FROM breakers)
                   AND id IN (SELECT job_id FROM job_events WHERE event = 'postponed' AND at > '{seen}')"""
    assert await count(connection, too_soon) == 0
    assert await state_of(connection) == "open", "too slow to show anything"
    await eventually(is_now(connection, "half_open"))

    assert await breaker_events(connection) == ["opened", "half_opened"]
    half_opened = await happened(connection, "half_opened")
    assert half_opened is not None
    assert half_opened >= breaker["open_until"]
    assert await starts(connection, seen, half_opened) == []
    # Nobody pays, whether the breaker was open yet or not.
    ends = await connection.fetch("SELECT event, at > $1 AS late, count(*) FROM job_events GROUP BY 1, 2", seen)
    ended = {(row["event"], row["late"]): row["count"] for row in ends}
    assert {event for event, _ in ended} == {"postponed"}
    assert ended["postponed", True] >= 12
    assert await count(connection, "attempts > 0") == 0


async def test_one_document_outlasts_a_dependency_that_refuses_connections(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    """Four attempts are used up in a moment here; the second refusal opens the breaker."""
    refused = tmp_path / "refused"
    refused.touch()
    start_worker(breaker_open=0.5, breaker_open_max=0.5)
    await some_jobs(connection, 1, CONVERT, payload={"refused": str(refused)})

    async def probed_in_vain() -> bool:
        return (await breaker_events(connection)).count("reopened") >= 4

    await eventually(probed_in_vain)
    assert (await breaker_events(connection))[0] == "opened"
    assert await connection.fetchval("SELECT count(*) FROM job_events") <= 20, "it is called as seldom as probes are"
    refused.unlink()
    await eventually(lambda: all_ended(connection))
    await all_succeeded_at_no_cost(connection, 1)


@pytest.mark.parametrize("how", ["closed", "half open"])
async def test_a_dependency_that_asks_for_time_gets_it_from_the_whole_fleet(
    connection: Connection, start_worker: StartWorker, tmp_path: Path, how: str
) -> None:
    """`Retry-After: 0` was called as fast as workers can; now it is hardly called at all, and nobody pays."""
    busy = tmp_path / "busy"
    busy.touch()
    if how == "half open":
        await opened(connection, 0.5)
    await some_jobs(connection, 300, CONVERT, payload={"busy": str(busy), "retry_after": 0})
    began = await now(connection)
    await fleet(connection, start_worker, worker_concurrency=8, breaker_open=0.5)

    async def started() -> list[datetime]:
        return await starts(connection, began)

    first = (await eventually(started))[0]

    async def five_seconds_later() -> bool:
        return bool(await connection.fetchval("SELECT now() - $1 > interval '5 seconds'", first))

    await eventually(five_seconds_later)
    runs = len(await starts(connection, began))
    # Closed, every slot of the fleet may be in use before the first answer. Then cool-downs of 1, 2 and 4 seconds
    # follow, each with a few calls at its end.
    assert runs <= (24 + 30 if how == "closed" else 30)
    busy.unlink()
    await eventually(lambda: all_ended(connection))
    await all_succeeded_at_no_cost(connection, 300)


async def test_exactly_the_configured_probes_start_and_one_that_fails_opens_it_for_twice_as_long(
    connection: Connection, start_worker: StartWorker, gate: Path, tmp_path: Path
) -> None:
    down = tmp_path / "down"
    down.touch()
    await opened(connection, 1.0)
    await some_jobs(connection, 60, CONVERT, payload={"down": str(down), "gate": str(gate)})
    # More probes than one worker has slots, and far fewer than the fleet has.
    await fleet(connection, start_worker, worker_concurrency=4, breaker_probes=5, breaker_open=1)
    await eventually(at_gate(gate, 5))
    await asyncio.sleep(0.8)  # nothing may happen: longer than a worker leaves a closed breaker alone
    first_period = await happened(connection, "half_opened")
    assert first_period is not None
    assert len(started_runs(gate)) == len(await starts(connection, first_period - A_SECOND)) == 5

    (gate / "open").touch()
    await eventually(is_now(connection, "open"))
    await eventually(nothing_runs(connection))
    (gate / "open").unlink()
    reopened = await standing(connection)
    assert (reopened["state"], reopened["open_seconds"]) == ("open", 2.0)
    assert reopened["open_until"] - reopened["since"] == 2 * A_SECOND
    assert await breaker_events(connection) == ["opened", "half_opened", "reopened"], "five failed, it opened once"
    assert await count(connection, "attempts > 0") == 0
    assert await connection.fetchval("SELECT count(*) FROM job_events WHERE event = 'postponed'") == 5

    await eventually(at_gate(gate, 10))
    await asyncio.sleep(0.8)  # nothing may happen
    second_period = await happened(connection, "half_opened")
    assert second_period is not None
    assert second_period >= reopened["open_until"]
    assert len(started_runs(gate)) == 10
    assert await starts(connection, reopened["since"], second_period) == []
    assert await count(connection, "attempts > 0") == 0
    down.unlink()
    (gate / "open").touch()
    await eventually(lambda: all_ended(connection))
    assert await breaker_events(connection) == ["opened", "half_opened", "reopened", "half_opened", "closed"]
    await all_succeeded_at_no_cost(connection, 60)


async def test_when_the_dependency_is_well_again_it_closes_and_all_that_waited_starts_at_once(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    await opened(connection, 0.5)
    await some_jobs(connection, 60, CONVERT, payload={"gate": str(gate)})
    await fleet(connection, start_worker, worker_concurrency=4)
    await eventually(at_gate(gate, 2))
    (gate / "open").touch()
    await eventually(lambda: all_ended(connection))

    closed = await happened(connection, "closed")
    assert closed is not None
    assert await breaker_events(connection) == ["opened", "half_opened", "closed"]
    assert (await starts(connection, closed))[-1] - closed < SOONER_THAN_A_POLL
    await all_succeeded_at_no_cost(connection, 60)


async def test_a_worker_killed_with_a_probe_in_hand_does_not_wedge_it(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    await opened(connection, 0.5)
    jobs = await some_jobs(connection, 8, CONVERT, payload={"gate": str(gate)})
    workers = await fleet(connection, start_worker, worker_concurrency=1)
    await eventually(at_gate(gate, 2))
    running = await connection.fetch(
        "SELECT jobs.id, pid FROM jobs JOIN workers ON workers.id = lease_owner WHERE jobs.state = 'running'"
    )
    assert len(running) == len({row["pid"] for row in running}) == 2, "two workers have a probe each"
    victim = next(worker for worker in workers if worker.pid == running[0]["pid"])
    victim.kill()

    async def rescued() -> bool:
        return await events(connection, running[0]["id"]) == ["suspected"]

    await eventually(rescued)
    await eventually(at_gate(gate, 3))
    await asyncio.sleep(0.8)  # nothing may happen
    assert len(started_runs(gate)) == 3, "one for the one that was lost"
    assert await breaker_events(connection) == ["opened", "half_opened"]
    (gate / "open").touch()
    await eventually(lambda: all_ended(connection))
    assert await breaker_events(connection) == ["opened", "half_opened", "closed"]
    assert await events(connection, running[0]["id"]) == ["suspected", "succeeded"]
    await all_succeeded_at_no_cost(connection, len(jobs))


async def test_documents_at_fault_count_neither_for_nor_against_it(
    connection: Connection, start_worker: StartWorker
) -> None:
    await some_jobs(connection, 50, CONVERT, payload={"unreadable": True})
    await some_jobs(connection, 5, CONVERT)
    await fleet(connection, start_worker)
    await eventually(lambda: all_ended(connection))

    async def counted() -> tuple[Any, ...] | None:
        row = await connection.fetchrow("SELECT sum(calls), sum(failures) FROM breaker_counts")
        return tuple(row) if row is not None and row[0] == 5 else None

    assert await eventually(counted) == (5, 0)
    assert await counts(connection) == {"failed": 50, "succeeded": 5}
    assert (await breaker_events(connection), await state_of(connection)) == ([], "closed")


async def test_an_operator_holds_at_once_and_releases_at_once(
    connection: Connection, start_worker: StartWorker
) -> None:
    await fleet(connection, start_worker, worker_concurrency=2)
    await trip(connection, CONVERTER, "maintenance", 3600)
    began = await now(connection)
    await some_jobs(connection, 300, CONVERT, payload={"seconds": 0.02})
    await asyncio.sleep(0.5)  # nothing may happen
    assert await starts(connection, began) == []
    await released_at_once(connection)
    for _ in range(3):  # in full flow
        ended = await count(connection, "state = 'succeeded'")

        async def flowing(ended: int = ended) -> bool:
            return await count(connection, "state = 'succeeded'") >= ended + 20

        await eventually(flowing)
        await trip(connection, CONVERTER, "maintenance", 3600)
        tripped = await now(connection)
        await eventually(nothing_runs(connection))
        await asyncio.sleep(0.3)  # nothing may happen
        assert await starts(connection, tripped) == []
        assert await count(connection, "state = 'queued'") > 0, "too slow to show anything"
        await released_at_once(connection)

    await eventually(lambda: all_ended(connection))
    assert await breaker_events(connection) == ["tripped", "reset"] * 4
    await all_succeeded_at_no_cost(connection, 300)


async def released_at_once(connection: Connection) -> None:
    """Reset the breaker: something starts because of that, and not with the next poll, 30 s later."""
    before = await now(connection)
    assert await reset(connection, CONVERTER)

    async def started() -> list[datetime]:
        return await starts(connection, before)

    assert (await eventually(started))[0] - before < SOONER_THAN_A_POLL


async def some_suspects(connection: Connection, jobs: int, gate: Path) -> list[uuid.UUID]:
    """Jobs that were there when a worker died: they run alone, in processes of their own."""
    async with connection.transaction():
        suspects = await some_jobs(connection, jobs, CONVERT, payload={"gate": str(gate)})
        await connection.execute("UPDATE jobs SET isolate = true")
    return suspects


def waiting_to_isolate(connection: Connection, processes: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        isolating = "SELECT count(*) = $1 FROM workers WHERE isolating AND state = 'active'"
        return bool(await connection.fetchval(isolating, processes))

    return look


@pytest.mark.heavy
async def test_suspects_that_run_alone_are_held_and_probe_like_all_others(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    await fleet(connection, start_worker, breaker_probes=1)  # fewer than processes that run suspects
    await trip(connection, CONVERTER, "until somebody resets it")
    await some_suspects(connection, 6, gate)
    await eventually(waiting_to_isolate(connection, 2))
    await asyncio.sleep(0.8)  # nothing may happen
    assert started_runs(gate) == []
    await trip(connection, CONVERTER, "for a moment", 0.2)
    await eventually(is_now(connection, "half_open"))
    half_opened = await happened(connection, "half_opened")
    assert half_opened is not None
    await eventually(at_gate(gate, 1))
    await asyncio.sleep(0.8)  # nothing may happen
    assert len(started_runs(gate)) == len(await starts(connection, half_opened - A_SECOND)) == 1
    (gate / "open").touch()
    await eventually(lambda: all_ended(connection))
    assert await breaker_events(connection) == ["tripped", "tripped", "half_opened", "closed"]
    await all_succeeded_at_no_cost(connection, 6)


async def test_suspects_are_released_at_once_too(connection: Connection, start_worker: StartWorker, gate: Path) -> None:
    await some_suspects(connection, 3, gate)
    await trip(connection, CONVERTER, "maintenance", 3600)
    start_worker(poll_interval=30)
    await eventually(waiting_to_isolate(connection, 1))
    await asyncio.sleep(0.5)  # nothing may happen
    assert started_runs(gate) == []
    (gate / "open").touch()
    await released_at_once(connection)
    await eventually(lambda: all_ended(connection))
    await all_succeeded_at_no_cost(connection, 3)
