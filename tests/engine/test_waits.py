"""A job's history shows what the breakers of its dependencies did while it waited, and nothing else of them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from support.clock import Clock
from support.engine import OTHER, one_job, some_jobs, start_worker, take
from waybill.db import Database
from waybill.db.database import Connection
from waybill_engine import breaker
from waybill_engine.breaker_control import reset, trip
from waybill_engine.cooldowns import cool_down
from waybill_engine.finish import succeed
from waybill_engine.queries import get_job, history, newest_history
from waybill_engine.waits import MOST_TRANSITIONS


@pytest.fixture(autouse=True)
async def _needs_the_gateway(hot: Connection) -> None:
    await breaker.register_kinds(hot, {"work": ["gateway", "storage"], "other": []})


async def told(db: Database, job_id: uuid.UUID) -> list[tuple[str, dict[str, Any]]]:
    async with db.transaction() as session:
        lines = await history(session, await get_job(session, job_id))
    assert [one.at for one in lines] == sorted(one.at for one in lines)
    return [(one.event, one.detail) for one in lines]


async def events(db: Database, job_id: uuid.UUID) -> list[str]:
    return [event for event, _ in await told(db, job_id)]


async def test_what_a_breaker_does_while_a_job_waits_is_in_the_jobs_history(
    db: Database, hot: Connection, clock: Clock
) -> None:
    await trip(hot, "gateway", "before it came")
    await reset(hot, "gateway")
    await clock.forward(1)
    job_id = await one_job(hot)
    await clock.forward(1)
    await trip(hot, "gateway", "maintenance")
    await clock.forward(30)
    assert await events(db, job_id) == ["enqueued", "breaker_tripped"]
    await reset(hot, "gateway")
    await clock.forward(1)
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    await clock.forward(1)
    await trip(hot, "gateway", "while it ran")
    await clock.forward(1)
    await succeed(hot, worker.id, [(claimed.id, claimed.token)])
    await clock.forward(1)
    await reset(hot, "gateway")

    found = await told(db, job_id)

    assert [event for event, _ in found] == ["enqueued", "breaker_tripped", "breaker_reset", "started", "succeeded"]
    assert (found[1][1]["dependency"], found[1][1]["reason"]) == ("gateway", "maintenance")


async def test_a_wait_that_begins_while_a_breaker_is_open_says_since_when_it_is(
    db: Database, hot: Connection, clock: Clock
) -> None:
    await trip(hot, "storage", "full")
    since = await hot.fetchval("SELECT at FROM breaker_events")
    await clock.forward(60)
    job_id = await one_job(hot)
    found = await told(db, job_id)
    assert [event for event, _ in found] == ["enqueued", "breaker_tripped"]
    assert found[1][1]["since"] == since.isoformat()
    assert found[1][1]["dependency"] == "storage"


async def test_a_cool_down_counts_as_long_as_it_lasts(db: Database, hot: Connection, clock: Clock) -> None:
    await cool_down(hot, "gateway", 20.0, breaker.BreakerPolicy())
    await clock.forward(10)
    early = await one_job(hot)
    await clock.forward(60)
    late = await one_job(hot)
    assert await events(db, early) == ["enqueued", "breaker_asked_to_wait"]
    assert await events(db, late) == ["enqueued"]


async def test_other_kinds_and_scheduled_jobs_do_not_wait_for_a_breaker(
    db: Database, hot: Connection, clock: Clock
) -> None:
    (other,) = await some_jobs(hot, 1, OTHER)
    later = await one_job(hot, delay=3600.0)
    await clock.forward(1)
    await trip(hot, "gateway", "maintenance")
    await clock.forward(1)
    assert await events(db, other) == ["enqueued"]
    assert await events(db, later) == ["enqueued"]


async def test_a_breaker_that_never_rests_adds_a_bounded_number_of_lines_and_no_rows(
    db: Database, hot: Connection, clock: Clock
) -> None:
    job_id = await one_job(hot)
    await clock.forward(1000)
    await hot.execute(
        """
        INSERT INTO breaker_events (name, at, event, detail)
        SELECT name, now() - (501 - n) * interval '1 second', CASE WHEN n % 2 = 1 THEN 'opened' ELSE 'closed' END, '[]'
          FROM generate_series(1, 500) AS n, unnest(ARRAY['gateway', 'storage']) AS name ORDER BY n
        """
    )
    async with db.transaction() as session:
        lines, _ = await newest_history(session, await get_job(session, job_id), 200)
    assert len(lines) == 1 + MOST_TRANSITIONS
    assert await hot.fetchval("SELECT count(*) FROM job_events") == 0
