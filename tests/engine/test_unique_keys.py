"""One job per unique key, within its scope, whoever asks at the same time."""

from __future__ import annotations

import asyncio
import math

import pytest

from support.clock import Clock
from support.engine import (
    OTHER,
    WORK,
    Connect,
    count,
    start_worker,
    take,
    until_blocked,
)
from waybill.db.database import Connection
from waybill.errors import Refused
from waybill_engine import NewJob, Unique, UniqueScope, enqueue, enqueue_many
from waybill_engine.control import cancel
from waybill_engine.finish import succeed


def unique(key: str = "k", scope: UniqueScope = UniqueScope.ACTIVE, window: float | None = None) -> NewJob:
    return NewJob(WORK, "acme", unique=Unique(key, scope, window))


async def test_while_a_job_is_active_its_key_is_taken_and_then_free(hot: Connection) -> None:
    first = await enqueue(hot, unique())
    assert await enqueue(hot, unique()) == first._replace(created=False)
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    assert await enqueue(hot, unique()) == first._replace(created=False)
    await succeed(hot, worker.id, [(claimed.id, claimed.token)])
    assert (await enqueue(hot, unique())).created


async def test_a_key_kept_for_ever_outlives_its_job(hot: Connection) -> None:
    first = await enqueue(hot, unique(scope=UniqueScope.FOREVER))
    await cancel(hot, first.id)
    assert await enqueue(hot, unique(scope=UniqueScope.FOREVER)) == first._replace(created=False)


async def test_a_window_rolls(hot: Connection, clock: Clock) -> None:
    first = await enqueue(hot, unique(scope=UniqueScope.WINDOW, window=60))
    await clock.forward(30)
    assert await enqueue(hot, unique(scope=UniqueScope.WINDOW, window=60)) == first._replace(created=False)
    await clock.forward(31)  # counted from the first, not from the last try
    second = await enqueue(hot, unique(scope=UniqueScope.WINDOW, window=60))
    assert second.created
    await clock.forward(59)
    assert await enqueue(hot, unique(scope=UniqueScope.WINDOW, window=60)) == second._replace(created=False)
    assert await count(hot) == 2


async def test_a_passed_window_is_free_for_a_key_kept_for_ever(hot: Connection, clock: Clock) -> None:
    await enqueue(hot, unique(scope=UniqueScope.WINDOW, window=60))
    await clock.forward(61)
    assert (await enqueue(hot, unique(scope=UniqueScope.FOREVER))).created


async def test_a_key_belongs_to_its_tenant_and_its_kind(hot: Connection) -> None:
    same = Unique("k")
    jobs = [NewJob(WORK, "acme", unique=same), NewJob(WORK, "zeta", unique=same), NewJob(OTHER, "acme", unique=same)]
    assert all(one.created for one in await enqueue_many(hot, jobs))


@pytest.mark.parametrize("asked", [UniqueScope.ACTIVE, UniqueScope.FOREVER])
async def test_the_answer_names_the_job_that_holds_the_key_in_the_same_scope(
    hot: Connection, asked: UniqueScope
) -> None:
    holders = {scope: await enqueue(hot, unique(scope=scope)) for scope in (UniqueScope.FOREVER, UniqueScope.ACTIVE)}
    assert await enqueue(hot, unique(scope=asked)) == holders[asked]._replace(created=False)


async def test_twenty_at_once_with_one_key_make_one_job(connect: Connect) -> None:
    connections = [await connect() for _ in range(20)]
    for round_ in range(5):
        answers = await asyncio.gather(*(enqueue(one, unique(f"k{round_}")) for one in connections))
        assert len({answer.id for answer in answers}) == 1
        assert sum(answer.created for answer in answers) == 1
    assert await count(connections[0]) == 5


async def test_twenty_at_once_after_a_window_passed_make_one_job(connect: Connect, clock: Clock) -> None:
    connections = [await connect() for _ in range(20)]
    job = unique(scope=UniqueScope.WINDOW, window=60)
    await enqueue(connections[0], job)
    await clock.forward(61)
    answers = await asyncio.gather(*(enqueue(one, unique(scope=UniqueScope.WINDOW, window=60)) for one in connections))
    assert len({answer.id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1


async def test_a_key_whose_holder_rolls_back_goes_to_who_waited(connect: Connect) -> None:
    mine, other = await connect(), await connect()
    transaction = mine.transaction()
    await transaction.start()
    await enqueue(mine, unique())
    waiting = asyncio.create_task(enqueue(other, unique()))
    await until_blocked(mine, other)
    await transaction.rollback()
    assert (await waiting).created
    assert await count(mine) == 1


async def test_two_bulk_enqueues_of_the_same_keys_in_opposite_orders_do_not_deadlock(connect: Connect) -> None:
    connections = [await connect() for _ in range(4)]
    for round_ in range(3):
        keys = [f"{round_}-{n}" for n in range(1500)]
        orders = [keys, keys[::-1], keys, keys[::-1]]
        answers = await asyncio.gather(
            *(
                enqueue_many(connection, [unique(key) for key in order])
                for connection, order in zip(connections, orders, strict=True)
            )
        )
        assert sum(one.created for answer in answers for one in answer) == len(keys)


async def test_bulk_enqueues_of_passed_windows_in_opposite_orders_do_not_deadlock(
    connect: Connect, clock: Clock
) -> None:
    connections = [await connect() for _ in range(4)]
    keys = [f"{n}" for n in range(1500)]
    orders = [keys, keys[::-1], keys, keys[::-1]]
    for _ in range(2):
        await asyncio.gather(
            *(
                enqueue_many(connection, [unique(key, UniqueScope.WINDOW, 60) for key in order])
                for connection, order in zip(connections, orders, strict=True)
            )
        )
        await clock.forward(61)
    assert await count(connections[0]) == 2 * len(keys)


async def test_freeing_passed_windows_locks_in_the_order_everybody_locks(connect: Connect, clock: Clock) -> None:
    """By id. By key, it would meet a batch of completions coming the other way."""
    finishing, enqueueing = await connect(), await connect()
    older = await enqueue(finishing, unique("b", UniqueScope.WINDOW, 60))
    younger = await enqueue(finishing, unique("a", UniqueScope.WINDOW, 60))
    worker = await start_worker(finishing)
    tokens = {claimed.id: claimed.token for claimed in await take(finishing, worker)}
    await clock.forward(61)
    async with finishing.transaction():
        await succeed(finishing, worker.id, [(older.id, tokens[older.id])])
        waiting = asyncio.create_task(
            enqueue_many(enqueueing, [unique(key, UniqueScope.WINDOW, 60) for key in ("a", "b")])
        )
        await until_blocked(finishing, enqueueing)
        await succeed(finishing, worker.id, [(younger.id, tokens[younger.id])])
    assert [one.created for one in await waiting] == [True, True]


@pytest.mark.parametrize("key", ["", "k" * 501, "a\0b", "\ud800"], ids=["empty", "long", "NUL", "half a surrogate"])
def test_an_impossible_unique_key_is_refused(key: str) -> None:
    with pytest.raises(Refused):
        Unique(key)


@pytest.mark.parametrize("window", [0.0, -5.0, math.nan, math.inf, 1e15])
def test_an_impossible_window_is_refused(window: float) -> None:
    with pytest.raises(Refused):
        Unique("k", UniqueScope.WINDOW, window)


@pytest.mark.parametrize(
    ("scope", "window"), [(UniqueScope.WINDOW, None), (UniqueScope.ACTIVE, 5.0), (UniqueScope.FOREVER, 5.0)]
)
def test_a_window_goes_with_its_scope_only(scope: UniqueScope, window: float | None) -> None:
    with pytest.raises(Refused):
        Unique("k", scope, window)


async def test_the_longest_key_of_the_widest_characters_fits(hot: Connection) -> None:
    wide = "".join(chr(0x1F300 + n) for n in range(500))
    first = await enqueue(hot, NewJob(WORK, "acme", unique=Unique(wide, UniqueScope.FOREVER)))
    again = await enqueue(hot, NewJob(WORK, "acme", unique=Unique(wide, UniqueScope.FOREVER)))
    assert again == first._replace(created=False)


async def test_one_key_wanted_in_two_scopes_by_two_callers_is_no_deadlock(connect: Connect) -> None:
    first, second, third = await connect(), await connect(), await connect()
    scopes = [UniqueScope.ACTIVE, UniqueScope.FOREVER]
    for number in range(10):
        jobs = [NewJob(WORK, "acme", unique=Unique(f"k{number}", scope)) for scope in scopes]
        again = [NewJob(WORK, "acme", unique=Unique(f"k{number}", scope)) for scope in reversed(scopes)]
        blocking = third.transaction()
        await blocking.start()
        await enqueue(third, NewJob(WORK, "acme", unique=Unique(f"k{number}", UniqueScope.ACTIVE)))
        both = asyncio.gather(enqueue_many(first, jobs), enqueue_many(second, again))
        await asyncio.sleep(0.02)  # both meet the third one's key, or one meets the other's
        await blocking.rollback()
        answers = await both
        assert sum(one.created for answer in answers for one in answer) == 2
