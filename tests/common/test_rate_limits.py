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


async def test_some_cost_more_and_one_beyond_the_limit_is_paid_for_afterwards(hot: Connection, clock: Clock) -> None:
    async def take(cost: int) -> float | None:
        return await rate_limits.take(hot, "me", limit=60, cost=cost)

    assert await take(40) is None
    assert await take(30) == 10, "ten more are there in ten seconds"
    assert await take(20) is None
    await clock.forward(60)
    assert await take(180) is None, "nobody could ever take more than the limit otherwise"
    assert await take(1) == 121
    await clock.forward(121)
    assert await take(1) is None


async def test_a_guess_is_corrected(hot: Connection) -> None:
    async def take(cost: int) -> float | None:
        return await rate_limits.take(hot, "me", limit=60, cost=cost)

    assert await take(60) is None
    await rate_limits.correct(hot, "me", limit=60, by=-30)
    assert await take(30) is None
    await rate_limits.correct(hot, "me", limit=60, by=10)
    assert await take(1) == 11


async def test_a_line_moves_at_the_pace_of_the_limit_and_takes_nothing(hot: Connection, clock: Clock) -> None:
    async def queue_up() -> float:
        return await rate_limits.queue_up(hot, "line", limit=60, cost=20, at_most=70)

    places = [await queue_up() for _ in range(4)]
    assert places == pytest.approx([20, 40, 60, 70], abs=0.5), "nobody waits for ever for those before him"
    await clock.forward(70)
    assert await queue_up() == pytest.approx(20, abs=0.5)
