"""So many in a minute, counted in one place, for however many ask at once."""

from __future__ import annotations

import asyncio

import pytest

from support.clock import Clock
from support.engine import Connect
from waybill import rate_limits
from waybill.db.database import Connection


@pytest.fixture
async def hot(connect: Connect) -> Connection:
    return await connect()


async def test_a_burst_and_then_a_steady_rate(hot: Connection, clock: Clock) -> None:
    async def take() -> float | None:
        return await rate_limits.take(hot, "me", limit=10)

    assert [await take() for _ in range(10)] == [None] * 10
    wait = await take()
    assert wait == 6
    assert await take() == 6, "asking again does not make it longer"
    await clock.forward(6)
    assert await take() is None
    assert await take() is not None
    await clock.forward(3600)
    assert [await take() for _ in range(11)].count(None) == 10, "an hour away saves no more than a minute's worth"


async def test_subjects_do_not_meet(hot: Connection) -> None:
    assert await rate_limits.take(hot, "a", limit=1) is None
    assert await rate_limits.take(hot, "b", limit=1) is None
    assert await rate_limits.take(hot, "a", limit=1) is not None


async def test_at_once_is_as_one_after_the_other(connect: Connect) -> None:
    connections = [await connect() for _ in range(10)]

    async def grab(connection: Connection) -> int:
        return [await rate_limits.take(connection, "me", limit=7) for _ in range(3)].count(None)

    assert sum(await asyncio.gather(*(grab(each) for each in connections))) == 7


async def test_the_idle_are_forgotten(hot: Connection, clock: Clock) -> None:
    await rate_limits.take(hot, "me", limit=10)
    assert await rate_limits.forget_idle(hot) == 0
    await clock.forward(60)
    assert await rate_limits.forget_idle(hot) == 1
