"""Real workers fire periodic jobs: one run per tick, however many of them there are and however they die."""

from __future__ import annotations

from datetime import timedelta

import pytest

from support import handlers
from support.clock import Clock
from support.patience import eventually
from support.pgbouncer import installed, pgbouncer
from support.schedules import HOLD, LET_GO, STOP_BEFORE_MOVING_ON, fired_ticks, nightly, set_time, utc
from support.workers import StartWorker
from waybill.db.database import Connection
from waybill_engine.schedules import Missed, declare, pause

DECLARING = {"worker_handlers": "support.handlers,support.scheduled_handlers"}
HOUR = timedelta(hours=1)


async def until_effects(connection: Connection, count: int) -> None:
    await eventually(lambda: connection.fetchval("SELECT count(*) = $1 FROM effects", count), what=f"{count} effects")


async def workers_ready(connection: Connection, count: int) -> None:
    """Registered and listening: what they are told from now on, they hear."""

    async def listening() -> bool:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%'"
        return int(await connection.fetchval(query)) >= count

    await eventually(listening)


async def test_three_workers_run_each_tick_once(
    connection: Connection, start_worker: StartWorker, clock: Clock
) -> None:
    start = utc("2026-06-01 00:30")
    await set_time(connection, start)
    for _ in range(3):
        start_worker(poll_interval=0.1, lease_ttl=86400, **DECLARING)
    await eventually(lambda: connection.fetchval("SELECT count(*) FROM schedules"))
    for number in range(1, 5):
        await clock.forward(HOUR.total_seconds())
        await until_effects(connection, number)
    assert await fired_ticks(connection, "hourly") == [start + HOUR / 2 + n * HOUR for n in range(4)]
    assert await connection.fetchval("SELECT count(DISTINCT job_id) FROM effects WHERE note = 'hourly'") == 4


async def test_a_schedule_fires_at_its_tick_without_waiting_for_a_poll(
    connection: Connection, start_worker: StartWorker
) -> None:
    """The worker is told of the schedule when it is declared, and sleeps until the tick, to the second."""
    start_worker(poll_interval=60)
    await workers_ready(connection, 1)
    await set_time(connection, utc("2026-06-01 02:29:59"))
    await declare(connection, nightly(kind=handlers.EFFECT))
    await until_effects(connection, 1)
    assert await fired_ticks(connection) == [utc("2026-06-01 02:30")]


async def test_a_worker_killed_while_it_fires_loses_nothing_and_doubles_nothing(
    connection: Connection, start_worker: StartWorker
) -> None:
    await set_time(connection, utc("2026-06-01 00:00"))
    await declare(connection, nightly(kind=handlers.EFFECT, cron="*/30 * * * *", missed=Missed.ALL))
    await connection.execute(STOP_BEFORE_MOVING_ON)
    await connection.execute(HOLD)
    await set_time(connection, utc("2026-06-01 02:10"))
    dying = start_worker()
    await eventually(
        lambda: connection.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)")
    )
    dying.kill()
    assert await fired_ticks(connection) == []
    await connection.execute(LET_GO)
    start_worker()
    await until_effects(connection, 4)
    assert await fired_ticks(connection) == [utc("2026-06-01 00:30") + n * HOUR / 2 for n in range(4)]


async def test_a_worker_that_starts_declares_and_leaves_a_pause_alone(
    connection: Connection, start_worker: StartWorker
) -> None:
    first = start_worker(**DECLARING)
    await eventually(lambda: connection.fetchval("SELECT count(*) FROM schedules"))
    await pause(connection, "hourly", "not now")
    declared = await connection.fetchrow("SELECT * FROM schedules")
    second = start_worker(**DECLARING)
    await workers_ready(connection, 2)
    await eventually(lambda: connection.fetchval("SELECT count(*) = 2 FROM workers WHERE state = 'active'"))
    assert await connection.fetchrow("SELECT * FROM schedules") == declared

    async def said() -> bool:
        return "schedule_created" in first.text

    await eventually(said)
    assert "schedule_created" not in second.text


async def test_while_nothing_is_due_a_worker_only_looks(connection: Connection, start_worker: StartWorker) -> None:
    """A poll is one read: it locks nothing and writes nothing."""
    await set_time(connection, utc("2026-06-01 12:00"))
    await declare(connection, nightly())
    untouched = await connection.fetchrow("SELECT xmin, xmax FROM schedules")
    start_worker(poll_interval=0.05)
    await workers_ready(connection, 1)
    looked = (
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%min(next_at)%' AND pid <> pg_backend_pid())"
    )
    await eventually(lambda: connection.fetchval(looked))
    assert await connection.fetchrow("SELECT xmin, xmax FROM schedules") == untouched


@pytest.mark.skipif(not installed(), reason="pgbouncer is not installed (Debian's package pgbouncer)")
async def test_behind_pgbouncer_schedules_are_declared_and_fired_by_polling(
    connection: Connection, start_worker: StartWorker, database_url: str
) -> None:
    await set_time(connection, utc("2026-06-01 00:30"))
    with pgbouncer(database_url) as pooled:
        start_worker(pooled, database_pgbouncer="true", poll_interval=0.1, lease_ttl=86400, **DECLARING)
        await eventually(lambda: connection.fetchval("SELECT count(*) FROM schedules"))
        await set_time(connection, utc("2026-06-01 01:10"))
        await until_effects(connection, 1)
    assert await fired_ticks(connection, "hourly") == [utc("2026-06-01 01:00")]
