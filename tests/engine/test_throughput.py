"""What ended in each minute, added up from all workers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from support.clock import Clock
from support.engine import Connect
from waybill.db.database import Connection
from waybill_engine import throughput
from waybill_engine.samples import take_if_due
from waybill_engine.throughput import Finished, by_kind, by_minute

HOUR = timedelta(hours=1)


async def test_workers_add_to_the_same_minute_in_any_order(hot: Connection, connect: Connect, clock: Clock) -> None:
    await clock.forward(60.0 - await hot.fetchval("SELECT extract(second FROM now())::float8") + 1.0)  # a whole minute
    ours = [Finished("a", "succeeded", 2, 1.0, 4.0), Finished("b", "failed", 1, 0.5, 0.25)]
    workers = [await connect() for _ in range(4)]

    await asyncio.gather(*(throughput.add(worker, ours if at % 2 else ours[::-1]) for at, worker in enumerate(workers)))

    assert await by_kind(hot, HOUR) == [Finished("a", "succeeded", 8, 4.0, 16.0), Finished("b", "failed", 4, 2.0, 1.0)]
    await throughput.add(hot, [Finished("b", "succeeded", 1, 1.0, 1.0)])
    together = [Finished("*", "failed", 4, 2.0, 1.0), Finished("*", "succeeded", 9, 5.0, 17.0)]
    assert [one for _, one in await by_minute(hot, HOUR)] == together


async def test_minutes_are_apart_and_leave_after_a_day(hot: Connection, clock: Clock) -> None:
    one = [Finished("a", "succeeded", 1, 0.0, 1.0)]
    await throughput.add(hot, one)
    await clock.forward(120.0)
    await throughput.add(hot, one)
    assert len(await by_minute(hot, HOUR)) == 2
    await clock.forward(3600.0)
    assert await by_minute(hot, HOUR) == []

    await clock.forward(86_400.0)
    assert await take_if_due(hot, 15.0)
    assert await hot.fetchval("SELECT count(*) FROM finished_by_minute") == 0
