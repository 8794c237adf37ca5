"""A parent runs once, when all its children have ended: however they end, whoever ends them, and at whatever moment."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.clock import Clock
from support.engine import (
    NO_SETTLE,
    OTHER,
    TTL,
    WORK,
    Connect,
    events,
    failure,
    find_contradictions,
    one_job,
    purge,
    row,
    start_worker,
    state,
    states,
    take,
    take_isolated,
    until_blocked,
)
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Cancelled, Conflict, NotFound, Refused
from waybill.failures import classify
from waybill.ids import new_id
from waybill_engine import (
    ClaimedJob,
    Family,
    JobKind,
    NewJob,
    State,
    Unique,
    add_children,
    enqueue,
    enqueue_family,
    queries,
    retention,
)
from waybill_engine.control import cancel, retry
from waybill_engine.explain import Reason, explain
from waybill_engine.finish import cancelled, judge, released, settle, succeed
from waybill_engine.lease import WorkerInfo, holdings, stop
from waybill_engine.models import FINAL
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import rescue, rescue_worker
from waybill_engine.retry import RetryPolicy

SUM = JobKind("sum", retry=RetryPolicy(retries=1, base=10.0, jitter=0.0))
KINDS = ("work", "other", "sum")
GONE = failure(retryable=False)


def some(count: int, **facts: Any) -> list[NewJob]:
    return [NewJob(WORK, "acme", **facts) for _ in range(count)]


async def family_of(connection: Connection, count: int, **facts: Any) -> Family:
    return await enqueue_family(connection, NewJob(SUM, "acme"), some(count, **facts))


async def running_family(connection: Connection, count: int) -> tuple[uuid.UUID, WorkerInfo, list[ClaimedJob]]:
    """A parent, and the worker that runs all its children."""
    family = await family_of(connection, count)
    worker = await start_worker(connection, kinds=KINDS)
    claimed_jobs = await take(connection, worker)
    assert [claimed.id for claimed in claimed_jobs] == [one.id for one in family.children]
    return family.parent.id, worker, claimed_jobs


async def pending(connection: Connection, parent_id: uuid.UUID) -> int:
    return int((await row(connection, parent_id))["pending_children"])


async def finish(connection: Connection, worker: WorkerInfo, *claimed_jobs: ClaimedJob) -> None:
    done = await succeed(connection, worker.id, [(claimed.id, claimed.token) for claimed in claimed_jobs])
    assert done == {claimed.id for claimed in claimed_jobs}


# Coming into being


async def test_a_parent_waits_and_cannot_be_claimed_nor_promoted(hot: Connection, clock: Clock) -> None:
    family = await family_of(hot, 3)
    parent = await row(hot, family.parent.id)
    assert (parent["state"], parent["children"], parent["pending_children"]) == ("scheduled", 3, 3)
    assert parent["progress"] == 0
    children = [await row(hot, one.id) for one in family.children]
    assert all((one["parent_id"], one["awaited"], one["state"]) == (parent["id"], True, "queued") for one in children)
    await clock.forward(1e9)
    promoted = await promote_due(hot)
    assert (promoted.count, promoted.next_in) == (0, None)
    claimed_jobs = await take(hot, await start_worker(hot, kinds=KINDS))
    assert [claimed.id for claimed in claimed_jobs] == [one.id for one in family.children]
    assert await find_contradictions(hot) == []


async def test_a_waiting_parent_does_not_hide_what_is_due_next(hot: Connection) -> None:
    await family_of(hot, 1)
    await one_job(hot, delay=60.0)
    next_in = (await promote_due(hot)).next_in
    assert next_in is not None
    assert 50 < next_in <= 60


async def test_ten_thousand_children_are_a_few_statements(hot: Connection) -> None:
    sent: list[str] = []
    hot.add_query_logger(lambda query: sent.append(query.query))
    family = await family_of(hot, 10_000)
    assert len(family.children) == 10_000
    assert len(sent) < 10
    assert await pending(hot, family.parent.id) == 10_000


async def test_a_parent_without_children_is_queued_at_once(hot: Connection) -> None:
    family = await family_of(hot, 0)
    assert (family.parent.created, list(family.children)) == (True, [])
    assert [claimed.id for claimed in await take(hot, await start_worker(hot, kinds=KINDS))] == [family.parent.id]


async def test_children_whose_keys_are_taken_are_not_waited_for(hot: Connection) -> None:
    elsewhere = await one_job(hot, unique=Unique("a"))
    children = [NewJob(WORK, "acme", unique=Unique(key)) for key in ("a", "b", "b")]
    family = await enqueue_family(hot, NewJob(SUM, "acme"), children)
    assert [one.created for one in family.children] == [False, True, False]
    assert family.children[0].id == elsewhere
    assert family.children[2].id == family.children[1].id
    assert await pending(hot, family.parent.id) == 1
    assert (await row(hot, elsewhere))["parent_id"] is None
    again = await enqueue_family(hot, NewJob(SUM, "acme"), children)
    assert not any(one.created for one in again.children)
    assert await state(hot, again.parent.id) is State.QUEUED, "nobody to wait for"
    assert await find_contradictions(hot) == []


async def test_a_parent_whose_key_is_taken_creates_nothing(hot: Connection) -> None:
    first = await enqueue_family(hot, NewJob(SUM, "acme", unique=Unique("run 7")), some(2))
    second = await enqueue_family(hot, NewJob(SUM, "acme", unique=Unique("run 7")), some(2))
    assert (second.parent.id, second.parent.created, list(second.children)) == (first.parent.id, False, [])
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 3
    assert await pending(hot, first.parent.id) == 2


async def test_a_family_exists_exactly_if_its_callers_transaction_commits(db: Database, hot: Connection) -> None:
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as session:
            await enqueue_family(session, NewJob(SUM, "acme"), some(2))
            raise ZeroDivisionError
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 0
    async with db.transaction() as session:
        await enqueue_family(session, NewJob(SUM, "acme"), some(2))
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 3


async def test_a_parent_has_no_time_of_its_own(hot: Connection) -> None:
    for parent in (NewJob(SUM, "acme", delay=1.0), NewJob(SUM, "acme", run_at=datetime.now(UTC))):
        with pytest.raises(Refused):
            await enqueue_family(hot, parent, some(1))


async def test_children_may_be_put_off(hot: Connection, clock: Clock) -> None:
    family = await family_of(hot, 1, delay=60.0)
    await clock.forward(61)
    assert (await promote_due(hot)).count == 1
    worker = await start_worker(hot, kinds=KINDS)
    await finish(hot, worker, *await take(hot, worker))
    assert await state(hot, family.parent.id) is State.QUEUED


# Firing


async def test_the_last_child_to_end_queues_the_parent_and_tells_the_workers(connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    parent_id, worker, (first, second, third) = await running_family(mine, 3)
    heard: list[str] = []
    await listener.add_listener("waybill_jobs", lambda *told: heard.append(str(told[3])))
    await finish(mine, worker, first, second)
    parent = await row(mine, parent_id)
    assert (parent["state"], parent["pending_children"]) == ("scheduled", 1)
    assert parent["progress"] == pytest.approx(2 / 3)
    assert heard == []
    await finish(mine, worker, third)
    parent = await row(mine, parent_id)
    assert (parent["state"], parent["pending_children"], parent["children"]) == ("queued", 0, 3)
    assert parent["run_at"] == parent["updated_at"]
    await listener.fetchval("SELECT 1")
    assert heard == ["default"]
    (claimed,) = await take(mine, worker)
    assert (claimed.id, claimed.token) == (parent_id, 1)
    await finish(mine, worker, claimed)
    assert await find_contradictions(mine) == []


async def lose(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> None:
    """Its worker dies with it in hand, three times."""
    await rescue_worker(connection, worker.id)
    for _ in range(2):
        other = await start_worker(connection, kinds=KINDS)
        assert [one.id for one in await take_isolated(connection, other)] == [claimed.id]
        await rescue_worker(connection, other.id)
    assert await state(connection, claimed.id) is State.DEAD_LETTER


async def give_up(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> None:
    await connection.execute("UPDATE jobs SET attempts = max_attempts - 1 WHERE id = $1", claimed.id)
    exhausted = ClaimedJob(**{name: getattr(claimed, name) for name in claimed.__slots__} | {"attempts": 2})
    await settle(connection, worker.id, [(claimed.id, claimed.token, judge(exhausted, failure(), WORK.retry))])
    assert await state(connection, claimed.id) is State.DEAD_LETTER


async def fail(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> None:
    await settle(connection, worker.id, [(claimed.id, claimed.token, judge(claimed, GONE, WORK.retry))])


async def be_cancelled(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> None:
    await cancel(connection, claimed.id)
    await settle(connection, worker.id, [(claimed.id, claimed.token, cancelled(classify(Cancelled())))])


async def be_cancelled_instead_of_retried(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> None:
    await cancel(connection, claimed.id)
    await settle(connection, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(), WORK.retry))])
    assert await state(connection, claimed.id) is State.CANCELLED


async def be_cancelled_and_lost(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> None:
    await cancel(connection, claimed.id)
    await rescue_worker(connection, worker.id)
    assert await state(connection, claimed.id) is State.CANCELLED


async def be_cancelled_while_waiting(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> None:
    await settle(connection, worker.id, [(claimed.id, claimed.token, released("bye"))])
    await cancel(connection, claimed.id)


async def be_cancelled_and_left_behind(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> None:
    await cancel(connection, claimed.id)
    await stop(connection, worker.id)
    assert await state(connection, claimed.id) is State.CANCELLED


WAYS_TO_END = (
    finish,
    fail,
    give_up,
    be_cancelled,
    be_cancelled_instead_of_retried,
    be_cancelled_and_lost,
    be_cancelled_while_waiting,
    be_cancelled_and_left_behind,
    lose,
)


@pytest.mark.parametrize("end", WAYS_TO_END, ids=[end.__name__ for end in WAYS_TO_END])
async def test_whatever_way_a_child_ends_it_is_counted_once(
    hot: Connection, end: Callable[[Connection, WorkerInfo, ClaimedJob], Coroutine[Any, Any, None]]
) -> None:
    family = await family_of(hot, 2)
    bystander = await start_worker(hot, kinds=KINDS)
    worker = await start_worker(hot, kinds=KINDS)
    (other,) = await take(hot, bystander, 1)
    (claimed,) = await take(hot, worker, 1)
    await end(hot, worker, claimed)
    assert await pending(hot, family.parent.id) == 1
    assert await find_contradictions(hot) == []
    await finish(hot, bystander, other)
    assert await state(hot, family.parent.id) is State.QUEUED
    assert await find_contradictions(hot) == []


@pytest.mark.parametrize("how", ["retry", "postpone", "release", "crash", "suspicion"])
async def test_a_child_that_comes_back_is_not_counted(hot: Connection, how: str) -> None:
    parent_id, worker, (claimed, _) = await running_family(hot, 2)
    outcome = {
        "retry": judge(claimed, failure(), WORK.retry),
        "postpone": judge(claimed, failure(charged=False, retry_after=5.0), WORK.retry),
        "release": released("bye"),
    }.get(how)
    if outcome is not None:
        await settle(hot, worker.id, [(claimed.id, claimed.token, outcome)])
    elif how == "suspicion":
        await rescue_worker(hot, worker.id)
    else:
        await settle(hot, worker.id, [(claimed.id, claimed.token, released("bye"))])
        alone = await start_worker(hot, kinds=KINDS)
        assert len(await take(hot, alone, 1)) == 1
        await rescue_worker(hot, alone.id)
    assert await pending(hot, parent_id) == 2
    assert await find_contradictions(hot) == []


async def test_a_stale_owner_counts_nothing(hot: Connection) -> None:
    parent_id, worker, claimed_jobs = await running_family(hot, 2)
    await rescue_worker(hot, worker.id)
    stale = [(claimed.id, claimed.token) for claimed in claimed_jobs]
    assert await succeed(hot, worker.id, stale) == set()
    assert await settle(hot, worker.id, [(*one, judge(claimed_jobs[0], GONE, WORK.retry)) for one in stale]) == {}
    assert await pending(hot, parent_id) == 2


async def test_a_completion_that_is_written_twice_counts_once(hot: Connection) -> None:
    parent_id, worker, (claimed, _) = await running_family(hot, 2)
    await finish(hot, worker, claimed)
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == set()
    assert await pending(hot, parent_id) == 1


async def test_one_batch_ends_children_of_many_families_and_jobs_of_none(hot: Connection) -> None:
    families = [await family_of(hot, 2) for _ in range(3)]
    alone = await one_job(hot)
    worker = await start_worker(hot, kinds=KINDS)
    claimed_jobs = await take(hot, worker)
    late = [family.children[1].id for family in families[:2]]
    await finish(hot, worker, *[claimed for claimed in claimed_jobs if claimed.id not in late])
    assert await state(hot, alone) is State.SUCCEEDED
    assert [await pending(hot, family.parent.id) for family in families] == [1, 1, 0]
    assert await find_contradictions(hot) == []


async def test_a_rolled_back_completion_counts_nothing(hot: Connection) -> None:
    parent_id, worker, (claimed, _) = await running_family(hot, 2)
    transaction = hot.transaction()
    await transaction.start()
    await finish(hot, worker, claimed)
    assert await pending(hot, parent_id) == 1
    await transaction.rollback()
    assert await pending(hot, parent_id) == 2
    assert await find_contradictions(hot) == []


async def test_a_fired_parent_that_fails_is_retried_by_the_clock(hot: Connection, clock: Clock) -> None:
    parent_id, worker, claimed_jobs = await running_family(hot, 2)
    await finish(hot, worker, *claimed_jobs)
    (claimed,) = await take(hot, worker)
    await settle(hot, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(), SUM.retry))])
    assert (await explain(hot, parent_id)).reason is Reason.SCHEDULED
    await clock.forward(11)
    assert (await promote_due(hot)).count == 1
    assert [again.id for again in await take(hot, worker)] == [parent_id]


async def test_purging_ended_children_changes_no_count(hot: Connection, clock: Clock) -> None:
    parent_id, worker, (first, second) = await running_family(hot, 2)
    await finish(hot, worker, first)
    await clock.forward(10)
    assert await purge(hot, older_than=timedelta(seconds=5), states=tuple(FINAL)) == 1
    parent = await row(hot, parent_id)
    assert (parent["children"], parent["pending_children"]) == (2, 1)
    await finish(hot, worker, second)
    assert await state(hot, parent_id) is State.QUEUED


# More children


async def test_children_can_be_added_while_the_parent_waits(hot: Connection) -> None:
    parent_id, worker, (first, _) = await running_family(hot, 2)
    await finish(hot, worker, first)
    added = await add_children(hot, parent_id, some(2))
    parent = await row(hot, parent_id)
    assert (parent["children"], parent["pending_children"], parent["progress"]) == (4, 3, 0.25)
    assert [(await row(hot, one.id))["parent_id"] for one in added] == [parent_id] * 2
    assert await add_children(hot, parent_id, []) == []
    assert await find_contradictions(hot) == []


async def test_children_cannot_be_added_to_what_does_not_wait(hot: Connection) -> None:
    parent_id, worker, claimed_jobs = await running_family(hot, 1)
    await finish(hot, worker, *claimed_jobs)
    gone = await family_of(hot, 1)
    await cancel(hot, gone.parent.id)
    for job_id in (parent_id, gone.parent.id, await one_job(hot), await one_job(hot, delay=60.0)):
        before = await hot.fetchval("SELECT count(*) FROM jobs")
        async with hot.transaction():
            with pytest.raises(Conflict):
                await add_children(hot, job_id, some(2))
            assert await hot.fetchval("SELECT count(*) FROM jobs") == before, "none of them is left behind"
    with pytest.raises(NotFound):
        await add_children(hot, new_id(), some(1))


async def test_a_child_added_while_the_last_one_ends_is_waited_for_or_refused(connect: Connect) -> None:
    adding, ending = await connect(), await connect()
    parent_id, worker, (first, second) = await running_family(adding, 2)
    await finish(adding, worker, first)
    async with adding.transaction():
        await add_children(adding, parent_id, some(1))
        waiting = asyncio.create_task(succeed(ending, worker.id, [(second.id, second.token)]))
        await until_blocked(adding, ending)
    await waiting
    assert (await state(adding, parent_id), await pending(adding, parent_id)) == (State.SCHEDULED, 1)

    (third,) = await take(adding, worker)
    async with ending.transaction():
        await succeed(ending, worker.id, [(third.id, third.token)])
        late = asyncio.create_task(add_children(adding, parent_id, some(1)))
        await until_blocked(ending, adding)
    with pytest.raises(Conflict):
        await late
    assert await state(adding, parent_id) is State.QUEUED
    assert await adding.fetchval("SELECT count(*) FROM jobs") == 4
    assert await find_contradictions(adding) == []


# At the same moment


async def test_two_workers_ending_the_last_two_children_at_once_fire_the_parent_once(connect: Connect) -> None:
    first, second = await connect(), await connect()
    parent_id, worker, (one, other) = await running_family(first, 2)
    async with first.transaction():
        await succeed(first, worker.id, [(one.id, one.token)])
        waiting = asyncio.create_task(succeed(second, worker.id, [(other.id, other.token)]))
        await until_blocked(first, second)
    assert await waiting == {other.id}
    parent = await row(first, parent_id)
    assert (parent["state"], parent["pending_children"], parent["progress"]) == ("queued", 0, 1)
    assert [claimed.id for claimed in await take(first, worker)] == [parent_id]


async def test_many_workers_ending_a_family_at_once_fire_it_once(connect: Connect) -> None:
    connections = [await connect() for _ in range(8)]
    parent_id, worker, claimed_jobs = await running_family(connections[0], 64)
    heard: list[str] = []
    await connections[0].add_listener("waybill_jobs", lambda *told: heard.append(str(told[3])))

    async def end(number: int) -> None:
        for claimed in claimed_jobs[number::8]:
            await finish(connections[number], worker, claimed)

    await asyncio.gather(*(end(number) for number in range(8)))
    await connections[0].fetchval("SELECT 1")
    assert heard == ["default"], "it became claimable once"
    assert (await state(connections[0], parent_id), await pending(connections[0], parent_id)) == (State.QUEUED, 0)
    assert await find_contradictions(connections[0]) == []


async def test_batches_over_the_same_families_do_not_deadlock(connect: Connect) -> None:
    connections = [await connect() for _ in range(4)]
    families = [await family_of(connections[0], 40) for _ in range(6)]
    worker = await start_worker(connections[0], kinds=KINDS)
    claimed_jobs = await take(connections[0], worker, 1000)
    # Each batch holds children of every family, in another order than the others.
    batches = [claimed_jobs[start::20] for start in range(20)]

    async def end(number: int) -> None:
        for batch in batches[number::4]:
            await finish(connections[number], worker, *batch)

    await asyncio.gather(*(end(number) for number in range(4)))
    assert await states(connections[0], [one.parent.id for one in families]) == [State.QUEUED] * 6


async def test_a_rescue_at_the_moment_of_the_end_counts_once(connect: Connect) -> None:
    ending, rescuing = await connect(), await connect()
    parent_id, worker, (claimed,) = await running_family(ending, 1)
    await cancel(ending, claimed.id)  # so that the rescue would end it, too
    async with ending.transaction():
        await succeed(ending, worker.id, [(claimed.id, claimed.token)])
        waiting = asyncio.create_task(rescue_worker(rescuing, worker.id))
        await until_blocked(ending, rescuing)
    assert await waiting == []
    assert (await state(ending, parent_id), await pending(ending, parent_id)) == (State.QUEUED, 0)


# Cancel


async def test_cancelling_a_parent_cancels_its_family(hot: Connection) -> None:
    family = await family_of(hot, 5)
    ids = [one.id for one in family.children]
    worker = await start_worker(hot, kinds=KINDS)
    done, running = await take(hot, worker, 2)
    await finish(hot, worker, done)
    bystander = await one_job(hot)
    result = await cancel(hot, family.parent.id, "not needed")
    assert (result.state, result.below, result.stopping) == (State.CANCELLED, 3, frozenset({running.id}))
    assert await states(hot, ids) == [State.SUCCEEDED, State.RUNNING, *[State.CANCELLED] * 3]
    parent = await row(hot, family.parent.id)
    assert (parent["state"], parent["pending_children"], parent["error_message"]) == ("cancelled", 0, "not needed")
    assert await events(hot, ids[4]) == ["cancelled"]
    assert await events(hot, ids[1]) == ["cancel_requested"]
    assert (await holdings(hot, worker.id)).stop == {running.id}
    assert await state(hot, bystander) is State.QUEUED
    assert await find_contradictions(hot) == []
    await settle(hot, worker.id, [(running.id, running.token, cancelled(classify(Cancelled())))])
    assert await state(hot, family.parent.id) is State.CANCELLED
    assert await find_contradictions(hot) == []


async def test_cancelling_wakes_each_worker_once(connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    family = await family_of(mine, 6)
    workers = [await start_worker(mine, kinds=KINDS) for _ in range(2)]
    for worker in workers:
        assert len(await take(mine, worker, 3)) == 3
    heard: list[str] = []
    await listener.add_listener("waybill_control", lambda *told: heard.append(str(told[3])))
    assert len((await cancel(mine, family.parent.id)).stopping) == 6
    await listener.fetchval("SELECT 1")
    assert sorted(heard) == sorted(str(worker.id) for worker in workers)


async def test_cancelling_a_child_cancels_only_that_child(hot: Connection) -> None:
    family = await family_of(hot, 3)
    result = await cancel(hot, family.children[1].id)
    assert (result.state, result.below, result.stopping) == (State.CANCELLED, 0, frozenset())
    assert await states(hot, [one.id for one in family.children]) == [State.QUEUED, State.CANCELLED, State.QUEUED]
    assert await pending(hot, family.parent.id) == 2


async def nested(connection: Connection) -> tuple[Family, Family]:
    """A parent with a child of its own and a whole family below it."""
    outer = await family_of(connection, 1)
    inner = await enqueue_family(connection, NewJob(SUM, "acme"), some(2), within=outer.parent.id)
    return outer, inner


async def test_a_family_within_a_family_fires_from_the_inside(hot: Connection) -> None:
    outer, inner = await nested(hot)
    assert await pending(hot, outer.parent.id) == 2
    worker = await start_worker(hot, kinds=KINDS)
    await finish(hot, worker, *await take(hot, worker))
    assert await states(hot, [inner.parent.id, outer.parent.id]) == [State.QUEUED, State.SCHEDULED]
    await finish(hot, worker, *await take(hot, worker))
    assert await states(hot, [inner.parent.id, outer.parent.id]) == [State.SUCCEEDED, State.QUEUED]
    assert await find_contradictions(hot) == []


async def test_a_family_cannot_join_one_that_does_not_wait(hot: Connection) -> None:
    with pytest.raises(Conflict):
        await enqueue_family(hot, NewJob(SUM, "acme"), some(2), within=await one_job(hot))
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 1


async def test_cancelling_reaches_families_within_families(hot: Connection) -> None:
    outer, inner = await nested(hot)
    worker = await start_worker(hot, kinds=KINDS)
    running = (await take(hot, worker, 2))[1]
    assert running.id == inner.children[0].id
    result = await cancel(hot, outer.parent.id)
    assert (result.below, result.stopping) == (2, frozenset({running.id, outer.children[0].id}))
    assert await states(hot, [outer.parent.id, inner.parent.id, inner.children[1].id]) == [State.CANCELLED] * 3
    assert await find_contradictions(hot) == []


async def test_cancelling_an_inner_family_counts_as_the_end_of_one_child(hot: Connection) -> None:
    outer, inner = await nested(hot)
    assert (await cancel(hot, inner.parent.id)).below == 2
    assert (await state(hot, outer.parent.id), await pending(hot, outer.parent.id)) == (State.SCHEDULED, 1)
    await cancel(hot, outer.children[0].id)
    assert await state(hot, outer.parent.id) is State.QUEUED
    assert await find_contradictions(hot) == []


async def test_a_parent_that_has_fired_is_cancelled_like_any_job(hot: Connection) -> None:
    parent_id, worker, claimed_jobs = await running_family(hot, 2)
    await finish(hot, worker, *claimed_jobs)
    assert (await cancel(hot, parent_id)).below == 0
    assert await state(hot, parent_id) is State.CANCELLED
    with pytest.raises(Conflict):
        await cancel(hot, parent_id)


async def test_a_cancel_that_meets_the_end_of_the_last_child_cancels_the_fired_parent(connect: Connect) -> None:
    ending, cancelling = await connect(), await connect()
    parent_id, worker, (claimed,) = await running_family(ending, 1)
    async with ending.transaction():
        await succeed(ending, worker.id, [(claimed.id, claimed.token)])
        waiting = asyncio.create_task(cancel(cancelling, parent_id))
        await until_blocked(ending, cancelling)
    assert (await waiting).state is State.CANCELLED
    assert await states(ending, [parent_id, claimed.id]) == [State.CANCELLED, State.SUCCEEDED]
    assert await find_contradictions(ending) == []


async def test_a_child_that_ends_while_its_family_is_cancelled_fires_nothing(connect: Connect) -> None:
    ending, cancelling = await connect(), await connect()
    parent_id, worker, (claimed,) = await running_family(ending, 1)
    async with cancelling.transaction():
        await cancel(cancelling, parent_id)
        waiting = asyncio.create_task(succeed(ending, worker.id, [(claimed.id, claimed.token)]))
        await until_blocked(cancelling, ending)
    assert await waiting == {claimed.id}
    assert await states(ending, [parent_id, claimed.id]) == [State.CANCELLED, State.SUCCEEDED]
    assert await find_contradictions(ending) == []


async def test_a_cancel_takes_children_that_are_being_added(connect: Connect) -> None:
    adding, cancelling = await connect(), await connect()
    family = await family_of(adding, 1)
    async with adding.transaction():
        (added,) = await add_children(adding, family.parent.id, some(1))
        waiting = asyncio.create_task(cancel(cancelling, family.parent.id))
        await until_blocked(adding, cancelling)
    assert (await waiting).below == 2
    assert await state(adding, added.id) is State.CANCELLED
    assert await find_contradictions(adding) == []


async def test_workers_and_a_cancel_at_once_do_not_hinder_each_other(db: Database, connect: Connect) -> None:
    async with AsyncExitStack() as lent:
        # Workers' own, whose statements have one plan and so lock in one order.
        await _end_while_cancelling([await lent.enter_async_context(db.hot()) for _ in range(4)], await connect())


async def _end_while_cancelling(ending: list[Connection], cancelling: Connection) -> None:
    for _ in range(5):
        outer, inner = await nested(cancelling)
        await add_children(cancelling, inner.parent.id, some(150))
        await add_children(cancelling, outer.parent.id, some(150))
        worker = await start_worker(cancelling, kinds=KINDS)
        claimed_jobs = await take(cancelling, worker, 200)

        async def end(number: int, worker: WorkerInfo = worker, claimed_jobs: list[ClaimedJob] = claimed_jobs) -> None:
            mine = claimed_jobs[number::4]
            for start in range(0, len(mine), 7):
                await succeed(ending[number], worker.id, [(one.id, one.token) for one in mine[start : start + 7]])

        await asyncio.gather(*(end(number) for number in range(4)), cancel(cancelling, outer.parent.id))
        assert await states(cancelling, [outer.parent.id, inner.parent.id]) == [State.CANCELLED] * 2
        assert await cancelling.fetchval("SELECT count(*) FROM jobs WHERE state = 'queued'") == 0
        assert await find_contradictions(cancelling) == []


# Retry


async def test_a_child_retried_while_its_parent_waits_is_waited_for_again(hot: Connection) -> None:
    parent_id, worker, (first, second) = await running_family(hot, 2)
    await fail(hot, worker, first)
    assert await pending(hot, parent_id) == 1
    assert await retry(hot, first.id) is State.QUEUED
    parent = await row(hot, parent_id)
    assert (parent["pending_children"], parent["children"], parent["progress"]) == (2, 2, 0)
    await finish(hot, worker, second)
    assert await state(hot, parent_id) is State.SCHEDULED
    await finish(hot, worker, *await take(hot, worker))
    assert await state(hot, parent_id) is State.QUEUED
    assert await find_contradictions(hot) == []


async def test_a_child_retried_after_the_parent_fired_has_no_effect_on_it(hot: Connection) -> None:
    parent_id, worker, (claimed,) = await running_family(hot, 1)
    await fail(hot, worker, claimed)
    (parent,) = await take(hot, worker)
    await retry(hot, claimed.id)
    before = await row(hot, parent_id)
    (again,) = await take(hot, worker)
    await finish(hot, worker, again)
    assert await row(hot, parent_id) == before
    await finish(hot, worker, parent)
    assert await events(hot, parent_id) == ["succeeded"]
    assert await find_contradictions(hot) == []


async def test_a_retried_child_and_its_running_parent_may_end_in_one_batch(hot: Connection) -> None:
    _, worker, (claimed,) = await running_family(hot, 1)
    await fail(hot, worker, claimed)
    (parent,) = await take(hot, worker)
    await retry(hot, claimed.id)
    (again,) = await take(hot, worker)
    await finish(hot, worker, parent, again)
    assert await states(hot, [parent.id, again.id]) == [State.SUCCEEDED] * 2


async def test_a_retry_at_the_moment_the_parent_fires_is_waited_for_or_not_never_lost(connect: Connect) -> None:
    ending, retrying = await connect(), await connect()
    # The end first: the parent has fired when the retry looks.
    parent_id, worker, (first, second) = await running_family(ending, 2)
    await fail(ending, worker, first)
    async with ending.transaction():
        await succeed(ending, worker.id, [(second.id, second.token)])
        waiting = asyncio.create_task(retry(retrying, first.id))
        await until_blocked(ending, retrying)
    await waiting
    assert await states(ending, [parent_id, first.id]) == [State.QUEUED, State.QUEUED]
    assert not (await row(ending, first.id))["awaited"]
    assert await find_contradictions(ending) == []
    # The retry first: the end of the other child leaves one to wait for.
    parent_id, worker, (first, second) = await running_family_beside(ending)
    await fail(ending, worker, first)
    async with retrying.transaction():
        await retry(retrying, first.id)
        finishing = asyncio.create_task(succeed(ending, worker.id, [(second.id, second.token)]))
        await until_blocked(retrying, ending)
    await finishing
    assert (await state(ending, parent_id), await pending(ending, parent_id)) == (State.SCHEDULED, 1)
    assert await find_contradictions(ending) == []


async def running_family_beside(connection: Connection) -> tuple[uuid.UUID, WorkerInfo, list[ClaimedJob]]:
    """Another running family, with everything else out of the way."""
    await connection.execute("DELETE FROM jobs")
    return await running_family(connection, 2)


async def test_a_cancelled_parent_that_is_retried_waits_for_its_active_children(hot: Connection) -> None:
    parent_id, worker, (first, second, third) = await running_family(hot, 3)
    await finish(hot, worker, first)
    await cancel(hot, parent_id)
    await settle(hot, worker.id, [(second.id, second.token, cancelled(classify(Cancelled())))])
    assert await retry(hot, parent_id) is State.SCHEDULED
    parent = await row(hot, parent_id)
    assert (parent["state"], parent["pending_children"]) == ("scheduled", 1)
    assert parent["progress"] == pytest.approx(2 / 3)
    assert await find_contradictions(hot) == []
    await retry(hot, second.id)
    assert await pending(hot, parent_id) == 2
    await settle(hot, worker.id, [(third.id, third.token, cancelled(classify(Cancelled())))])
    await finish(hot, worker, *await take(hot, worker))
    assert await state(hot, parent_id) is State.QUEUED
    assert await find_contradictions(hot) == []


async def test_a_cancelled_parent_without_active_children_is_simply_queued_again(hot: Connection) -> None:
    family = await family_of(hot, 2)
    await cancel(hot, family.parent.id)
    assert await retry(hot, family.parent.id) is State.QUEUED
    assert [claimed.id for claimed in await take(hot, await start_worker(hot, kinds=KINDS))] == [family.parent.id]


async def test_a_child_that_ends_while_its_cancelled_parent_is_retried_is_counted(connect: Connect) -> None:
    """The end begins while the parent is still cancelled, and must not miss that it waits again."""
    ending, retrying = await connect(), await connect()
    parent_id, worker, (claimed,) = await running_family(ending, 1)
    await cancel(ending, parent_id)
    async with retrying.transaction():
        await retry(retrying, parent_id)
        waiting = asyncio.create_task(succeed(ending, worker.id, [(claimed.id, claimed.token)]))
        await until_blocked(retrying, ending)
    assert await waiting == {claimed.id}
    assert (await state(ending, parent_id), await pending(ending, parent_id)) == (State.QUEUED, 0)
    assert await find_contradictions(ending) == []


async def test_a_retried_inner_parent_waits_below_and_is_waited_for_above(hot: Connection) -> None:
    outer, inner = await nested(hot)
    worker = await start_worker(hot, kinds=KINDS)
    claimed_jobs = await take(hot, worker)
    await cancel(hot, inner.parent.id)
    assert await pending(hot, outer.parent.id) == 1
    assert await retry(hot, inner.parent.id) is State.SCHEDULED
    assert [await pending(hot, one.parent.id) for one in (outer, inner)] == [2, 2]
    assert await find_contradictions(hot) == []
    await finish(hot, worker, *claimed_jobs)
    await finish(hot, worker, *await take(hot, worker))
    assert await state(hot, outer.parent.id) is State.QUEUED


async def test_a_child_whose_parent_was_purged_is_retried_alone(hot: Connection, clock: Clock) -> None:
    parent_id, worker, (claimed,) = await running_family(hot, 1)
    await fail(hot, worker, claimed)
    await finish(hot, worker, *await take(hot, worker))
    await clock.forward(10)
    assert await purge(hot, older_than=timedelta(seconds=5), states=[State.SUCCEEDED]) == 1
    await retry(hot, claimed.id)
    (again,) = await take(hot, await start_worker(hot, kinds=KINDS))
    assert again.id == claimed.id
    assert await hot.fetchval("SELECT count(*) FROM jobs WHERE id = $1", parent_id) == 0


async def test_a_plain_job_has_no_parent(hot: Connection) -> None:
    """Only what counts children can name a parent, so nobody can be added without being counted."""
    with pytest.raises(TypeError):
        NewJob(WORK, "acme", parent_id=new_id())  # type: ignore[call-arg]
    plain = await row(hot, (await enqueue(hot, NewJob(OTHER, "acme"))).id)
    assert (plain["parent_id"], plain["awaited"]) == (None, False)


# Looking


async def test_a_waiting_parent_explains_for_how_many_it_waits(hot: Connection) -> None:
    parent_id, worker, claimed_jobs = await running_family(hot, 3)
    await finish(hot, worker, claimed_jobs[0])
    answer = await explain(hot, parent_id)
    assert (answer.reason, answer.sentence) == (Reason.CHILDREN, "It is waiting for 2 of 3 children.")
    assert answer.facts == {"pending_children": 2, "children": 3}
    single = await family_of(hot, 1)
    assert (await explain(hot, single.parent.id)).sentence == "It is waiting for 1 of 1 child."


async def test_children_are_counted_by_state_and_listed_in_pages(db: Database, hot: Connection) -> None:
    parent_id, worker, claimed_jobs = await running_family(hot, 4)
    await finish(hot, worker, claimed_jobs[0])
    await fail(hot, worker, claimed_jobs[1])
    await one_job(hot)
    async with db.transaction() as session:
        assert await queries.count_children(session, parent_id) == {
            State.SUCCEEDED: 1,
            State.FAILED: 1,
            State.RUNNING: 2,
        }
        first = await queries.list_jobs(session, parent_id=parent_id, limit=3)
        rest = await queries.list_jobs(session, parent_id=parent_id, limit=3, before=first[-1].id)
    assert [job.id for job in (*first, *rest)] == [claimed.id for claimed in reversed(claimed_jobs)]


async def test_a_worker_whose_lease_ran_out_leaves_a_family_that_still_fires(hot: Connection, clock: Clock) -> None:
    parent_id, _, claimed_jobs = await running_family(hot, 2)
    await clock.forward(TTL + 1)
    assert len(await rescue(hot, settle_time=NO_SETTLE)) == 2
    other = await start_worker(hot, kinds=KINDS)
    for _ in claimed_jobs:
        await finish(hot, other, *await take_isolated(hot, other))
    assert await state(hot, parent_id) is State.QUEUED
    assert await find_contradictions(hot) == []


# Children that are deleted


async def test_a_parent_does_not_wait_for_a_child_that_was_deleted(hot: Connection) -> None:
    family = await family_of(hot, 2)
    first, second = (child.id for child in family.children)
    async with hot.transaction():
        await retention.delete(hot, await retention.lock(hot, [first]))
    assert (await row(hot, family.parent.id))["pending_children"] == 1
    async with hot.transaction():
        await retention.delete(hot, await retention.lock(hot, [second]))
    assert await state(hot, family.parent.id) is State.QUEUED
    assert await find_contradictions(hot) == []


async def test_an_ended_child_that_is_deleted_is_counted_once(hot: Connection) -> None:
    family = await family_of(hot, 2)
    first = family.children[0].id
    await cancel(hot, first)
    async with hot.transaction():
        await retention.delete(hot, await retention.lock(hot, [first]))
    assert (await row(hot, family.parent.id))["pending_children"] == 1
    assert await find_contradictions(hot) == []


async def test_a_family_that_is_deleted_whole_leaves_nothing(hot: Connection) -> None:
    family = await family_of(hot, 2)
    ids = [family.parent.id, *(child.id for child in family.children)]
    async with hot.transaction():
        assert (await retention.delete(hot, await retention.lock(hot, ids))).jobs == 3
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 0
