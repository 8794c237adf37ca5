"""Workers hear of new jobs lane by lane, when the transaction commits, and refuse what makes no sense."""

from __future__ import annotations

import asyncio

import pytest

from support.engine import (
    WORK,
    Connect,
    some_jobs,
)
from waybill_engine import NewJob, enqueue_many
from waybill_engine.announcements import parse_lane
from waybill_engine.lanes import Lane


async def test_workers_are_told_once_per_lane_when_the_transaction_commits(connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await listener.add_listener("waybill_jobs", lambda *told: heard.put_nowait(str(told[3])))
    async with mine.transaction():
        by_day = await some_jobs(mine, 50)
        by_night = await some_jobs(mine, 50, queue="night")
        await listener.execute("SELECT 1")
        assert heard.empty()
    assert {parse_lane(await heard.get()), parse_lane(await heard.get())} == {
        (Lane("default", "work", 0, "acme"), by_day[0]),
        (Lane("night", "work", 0, "acme"), by_night[0]),
    }


async def test_of_many_lanes_workers_are_told_the_queue(connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await listener.add_listener("waybill_jobs", lambda *told: heard.put_nowait(str(told[3])))
    await enqueue_many(mine, [NewJob(WORK, f"tenant-{number}") for number in range(500)])
    assert await heard.get() == "default"
    await listener.execute("SELECT 1")
    assert heard.empty()


@pytest.mark.parametrize(
    "payload",
    [
        "[",
        "[]",
        '["q", "k", "x", "t", "01890000-0000-7000-8000-000000000001"]',
        '["q", "k", 99999, "t", "01890000-0000-7000-8000-000000000001"]',
        '["q", "k", true, "t", "01890000-0000-7000-8000-000000000001"]',
        '["q", "k", 0, "t", 5]',
        '["q", "k", 0, "t", "no id"]',
        '["q", ["k"], 0, "t", "01890000-0000-7000-8000-000000000001"]',
    ],
)
def test_an_announcement_that_makes_no_sense_is_not_believed(payload: str) -> None:
    with pytest.raises(ValueError):
        parse_lane(payload)
