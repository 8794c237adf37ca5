"""Scheduled jobs become claimable when they are due, and not before."""

from __future__ import annotations

import asyncio

import pytest

from support.clock import Clock
from support.engine import (
    Connect,
    count,
    one_job,
    some_jobs,
    start_worker,
    take,
)
from waybill.db.database import Connection
from waybill_engine.promotion import promote_due


async def test_a_scheduled_job_is_claimable_once_it_is_due_and_promoted(hot: Connection, clock: Clock) -> None:
    job_id = await one_job(hot, delay=30.0)
    worker = await start_worker(hot)
    first = await promote_due(hot)
    assert first.count == 0
    assert first.next_in == pytest.approx(30, abs=5)
    assert await take(hot, worker) == []
    await clock.forward(31)
    second = await promote_due(hot)
    assert (second.count, second.next_in) == (1, None)
    assert [claimed.id for claimed in await take(hot, worker)] == [job_id]


async def test_promotion_goes_in_bites_and_says_when_to_look_again(hot: Connection, clock: Clock) -> None:
    await some_jobs(hot, 5, delay=10.0)
    await some_jobs(hot, 1, delay=100.0)
    await clock.forward(11)
    found = [await promote_due(hot, 2) for _ in range(4)]
    assert [one.count for one in found] == [2, 2, 1, 0]
    assert found[-1].next_in == pytest.approx(89, abs=5)


async def test_two_promoters_share_what_is_due(connect: Connect, clock: Clock) -> None:
    connections = [await connect() for _ in range(6)]
    await some_jobs(connections[0], 300, delay=10.0)
    await clock.forward(11)
    found = await asyncio.gather(*(promote_due(one, 100) for one in connections))
    rest = await promote_due(connections[0])
    assert sum(one.count for one in found) + rest.count == 300
    assert await count(connections[0], "state = 'queued'") == 300
