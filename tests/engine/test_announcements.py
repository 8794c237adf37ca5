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
from waybill_engine.announcements import parse_jobs, parse_lane
from waybill_engine.lanes import Lane, Position


async def test_workers_are_told_once_per_lane_when_the_transaction_commits(connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await listener.add_listener("waybill_lanes", lambda *told: heard.put_nowait(str(told[3])))
    async with mine.transaction():
        await some_jobs(mine, 50)
        await some_jobs(mine, 150, queue="night")  # enough for COPY
        since = Position(await mine.fetchval("SELECT now()"))
        await listener.execute("SELECT 1")
        assert heard.empty()
    assert {parse_lane(await heard.get()), parse_lane(await heard.get())} == {
        (Lane("default", "work", 0, "acme", "acme"), since, 50),
        (Lane("night", "work", 0, "acme", "acme"), since, 150),
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
        "{}",
        "5",
        '[["q", "k", "x", "t", "o"], 1767225600000000, 1]',
        '[["q", "k", 99999, "t", "o"], 1767225600000000, 1]',
        '[["q", "k", true, "t", "o"], 1767225600000000, 1]',
        '[["q", "k", 0, "t", "o"], "2026-01-01", 1]',
        '[["q", "k", 0, "t", "o"], 17672256000000000000, 1]',
        '[["q", "k", 0, "t", "o"], 1767225600000000, 0]',
        '[["q", "k", 0, "t", "o"], 1767225600000000, true]',
        '[["q", "k", 0, "t", "o"], 1767225600000000]',
        '[["q", "k", 0, "t"], 1767225600000000, 1]',
        '["q", 1767225600000000, 1]',
        '[["q", ["k"], 0, "t", "o"], 1767225600000000, 1]',
    ],
)
def test_an_announcement_that_makes_no_sense_is_not_believed(payload: str) -> None:
    with pytest.raises(ValueError):
        parse_lane(payload)


def test_an_announcement_of_release_0_1_0_is_understood() -> None:
    assert parse_jobs('["q", "k", 0, "t", "01890000-0000-7000-8000-000000000001"]') == "q"
    assert parse_jobs("default") == "default"


@pytest.mark.parametrize("payload", ["[", "[]", '["q", "k", 0, "t", 5]', '["q", "k", 0, "t", "no id"]'])
def test_an_announcement_of_release_0_1_0_that_makes_no_sense_is_not_believed(payload: str) -> None:
    with pytest.raises(ValueError):
        parse_jobs(payload)
