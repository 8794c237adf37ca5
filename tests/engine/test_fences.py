"""A stale owner changes nothing, though the job is running again: under the next token."""

from __future__ import annotations

import pytest

from support.clock import Clock
from support.engine import NO_SETTLE, TTL, Connect, row, running_job, start_worker, take_isolated
from waybill.errors import LeaseLost
from waybill_engine import ClaimedJob
from waybill_engine.finish import released, settle, succeed
from waybill_engine.lease import Progress, WorkerInfo, fence, write_progress
from waybill_engine.rescue import rescue


async def taken_over(connect: Connect, clock: Clock) -> tuple[WorkerInfo, ClaimedJob]:
    """A worker whose job another one runs by now, and its stale lease."""
    connection = await connect()
    stale, claimed = await running_job(connection)
    await clock.forward(TTL + 1)
    await rescue(connection, settle_time=NO_SETTLE)
    other = await start_worker(connection)
    (again,) = await take_isolated(connection, other)
    assert (again.id, again.token) == (claimed.id, claimed.token + 1)
    return stale, claimed


async def test_a_stale_owner_can_neither_finish_nor_release_nor_fail_it(connect: Connect, clock: Clock) -> None:
    stale, claimed = await taken_over(connect, clock)
    connection = await connect()
    before = await row(connection, claimed.id)

    assert await succeed(connection, stale.id, [(claimed.id, claimed.token)]) == set()
    assert await settle(connection, stale.id, [(claimed.id, claimed.token, released("mine"))]) == {}

    assert await row(connection, claimed.id) == before


async def test_a_stale_owners_progress_is_not_written(connect: Connect, clock: Clock) -> None:
    _, claimed = await taken_over(connect, clock)
    connection = await connect()
    before = await row(connection, claimed.id)

    assert await write_progress(connection, [Progress(claimed.id, claimed.token, 0.5, "stale")]) == set()

    assert await row(connection, claimed.id) == before


async def test_a_stale_owner_does_not_pass_the_fence(connect: Connect, clock: Clock) -> None:
    _, claimed = await taken_over(connect, clock)
    with pytest.raises(LeaseLost):
        await fence(await connect(), claimed.id, claimed.token)
