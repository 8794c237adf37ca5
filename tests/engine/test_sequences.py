"""Jobs of a sequence run in their order, never too many at once, and no turn is lost: whoever ends them, at whatever
moment, and whatever else is locked."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import Any

import pytest

from support.clock import Clock
from support.engine import (
    NO_SETTLE,
    OTHER,
    TTL,
    WORK,
    Connect,
    count,
    events,
    failure,
    find_contradictions,
    one_job,
    row,
    start_worker,
    state,
    states,
    take,
    take_isolated,
)
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill.errors import Refused
from waybill_engine import (
    ClaimedJob,
    NewJob,
    SequenceKey,
    State,
    Unique,
    add_children,
    enqueue,
    enqueue_family,
    enqueue_many,
    retention,
)
from waybill_engine.control import cancel, prioritise, retry
from waybill_engine.due_times import next_due
from waybill_engine.explain import Reason, explain
from waybill_engine.finish import judge, released, settle, succeed
from waybill_engine.lease import WorkerInfo
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import rescue, rescue_worker
from waybill_engine.sequences import SequenceId, find_stalled, take_missed_turns

# Every run leaves its beginning and its end in the history.
TOO_MANY_AT_ONCE = """
WITH runs AS (
    SELECT sequence_key, sequence_at_once, job_events.job_id, job_events.started_at, job_events.at
      FROM job_events JOIN jobs ON jobs.id = job_id
     WHERE job_events.started_at IS NOT NULL
)
SELECT run.job_id FROM runs AS run
 WHERE run.sequence_at_once < (SELECT count(*) FROM runs AS other
                                WHERE other.sequence_key = run.sequence_key
                                  AND other.started_at <= run.started_at AND run.started_at < other.at)
"""

Q, S, R = State.QUEUED, State.SCHEDULED, State.RUNNING


def a_job(key: str = "k", at_once: int = 1, **facts: Any) -> NewJob:
    return NewJob(WORK, "acme", sequence=SequenceKey(key, at_once), **facts)


async def some(connection: Connection, number: int, key: str = "k", at_once: int = 1, **facts: Any) -> list[uuid.UUID]:
    """Each in an enqueue of its own."""
    return [(await enqueue(connection, a_job(key, at_once, **facts))).id for _ in range(number)]


async def finish(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> None:
    assert await succeed(connection, worker.id, [(claimed.id, claimed.token)]) == {claimed.id}


async def fail(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob, *, retryable: bool) -> None:
    outcome = judge(claimed, failure(retryable=retryable), WORK.retry)
    await settle(connection, worker.id, [(claimed.id, claimed.token, outcome)])


async def catch_up(connection: Connection) -> None:
    """Take missed turns until there are none, as a worker does."""
    while await take_missed_turns(connection) is not None:
        pass


# Order


async def test_jobs_of_a_sequence_run_one_after_the_other_in_their_order(hot: Connection) -> None:
    jobs = await some(hot, 5)
    worker = await start_worker(hot)
    for number, job_id in enumerate(jobs):
        assert await states(hot, jobs[number:]) == [Q, *[S] * (4 - number)]
        (claimed,) = await take(hot, worker)
        assert claimed.id == job_id
        await finish(hot, worker, claimed)
    assert await find_contradictions(hot) == []


async def test_a_few_may_run_at_once(hot: Connection) -> None:
    jobs = await some(hot, 6, at_once=3)
    worker = await start_worker(hot)
    running = await take(hot, worker)
    assert [claimed.id for claimed in running] == jobs[:3]
    await finish(hot, worker, running[1])
    (another,) = await take(hot, worker)
    assert another.id == jobs[3]
    done = [(claimed.id, claimed.token) for claimed in (running[0], running[2], another)]
    assert len(await succeed(hot, worker.id, done)) == 3
    assert await states(hot, jobs[4:]) == [Q, Q]
    assert await find_contradictions(hot) == []


async def test_tenants_kinds_and_keys_have_sequences_of_their_own(hot: Connection) -> None:
    key = SequenceKey("k")
    jobs = [
        NewJob(WORK, "acme", sequence=key),
        NewJob(WORK, "zeta", sequence=key),
        NewJob(OTHER, "acme", sequence=key),
        NewJob(WORK, "acme", sequence=SequenceKey("other")),
        NewJob(WORK, "acme"),
    ]
    assert await states(hot, [one.id for one in await enqueue_many(hot, jobs)]) == [Q] * 5


@pytest.mark.parametrize("number", [7, 300])
async def test_many_jobs_at_once_are_in_the_order_given(hot: Connection, number: int) -> None:
    """Also where their unique keys sort otherwise, and where so many jobs would be copied."""
    given = [a_job(unique=Unique(f"{number - n:03}")) for n in range(number)]
    jobs = [one.id for one in await enqueue_many(hot, given)]
    ordered = await hot.fetch("SELECT id FROM jobs ORDER BY sequence_position")
    assert [found["id"] for found in ordered] == jobs
    assert await count(hot, "state = 'queued'") == 1
    assert await state(hot, jobs[0]) == Q


async def test_the_order_does_not_depend_on_the_clock_of_who_enqueues(hot: Connection) -> None:
    late_id, early_id = uuid.UUID(int=2**127), uuid.UUID(int=1)
    await enqueue(hot, a_job(id=late_id))
    await enqueue(hot, a_job(id=uuid.UUID(int=2**126)))
    await enqueue(hot, a_job(id=early_id))
    worker = await start_worker(hot)
    ran = []
    while claimed_jobs := await take(hot, worker):
        ran += [claimed.id for claimed in claimed_jobs]
        await finish(hot, worker, claimed_jobs[0])
    assert ran == [late_id, uuid.UUID(int=2**126), early_id]


async def test_a_retry_that_waits_keeps_its_place(hot: Connection, clock: Clock) -> None:
    first, second = await some(hot, 2)
    worker = await start_worker(hot)
    for _ in range(2):
        (claimed,) = await take(hot, worker)
        assert claimed.id == first
        await fail(hot, worker, claimed, retryable=True)
        assert await states(hot, [first, second]) == [S, S]
        assert await take(hot, worker) == []
        await clock.forward(25)
        assert (await promote_due(hot)).count == 1
    (claimed,) = await take(hot, worker)
    await fail(hot, worker, claimed, retryable=True)
    assert await states(hot, [first, second]) == [State.DEAD_LETTER, Q]
    assert await find_contradictions(hot) == []


async def test_a_released_job_keeps_its_place(hot: Connection) -> None:
    first, second = await some(hot, 2)
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    await settle(hot, worker.id, [(claimed.id, claimed.token, released("shutdown"))])
    assert await states(hot, [first, second]) == [Q, S]


async def test_a_delayed_job_holds_its_place_and_its_delay_counts_from_the_enqueue(
    hot: Connection, clock: Clock
) -> None:
    first, second, third = [*await some(hot, 1), *await some(hot, 1, delay=100), *await some(hot, 1)]
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    await clock.forward(40)
    await finish(hot, worker, claimed)
    assert await states(hot, [second, third]) == [S, S]
    due = (await next_due(hot)).job
    assert due is not None
    assert 50 < due <= 60
    await clock.forward(70)
    await promote_due(hot)
    assert await states(hot, [first, second, third]) == [State.SUCCEEDED, Q, S]


async def test_parked_jobs_are_never_due(hot: Connection, clock: Clock) -> None:
    await some(hot, 3)
    await clock.forward(1e9)
    promoted = await promote_due(hot)
    assert (promoted.count, promoted.next_in, promoted.missed_turns) == (0, None, False)
    assert (await next_due(hot)).job is None


async def test_priority_does_not_change_the_order_of_a_sequence(hot: Connection) -> None:
    first, second, third = await some(hot, 3)
    assert await prioritise(hot, third, 9) is S
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    await finish(hot, worker, claimed)
    assert await states(hot, [first, second, third]) == [State.SUCCEEDED, Q, S]


async def test_a_key_in_use_creates_nothing_and_parks_nothing(hot: Connection) -> None:
    first = await enqueue(hot, a_job(unique=Unique("u")))
    assert await enqueue(hot, a_job(unique=Unique("u"))) == type(first)(first.id, created=False)
    assert await count(hot) == 1


async def test_a_job_that_wants_to_be_alone_is_not_overtaken(hot: Connection) -> None:
    crowd = await some(hot, 2, at_once=3)
    (alone,) = await some(hot, 1, at_once=1)
    (after,) = await some(hot, 1, at_once=3)
    worker = await start_worker(hot)
    for claimed in await take(hot, worker):
        assert await states(hot, [alone, after]) == [S, S]
        await finish(hot, worker, claimed)
    assert await states(hot, [*crowd, alone]) == [State.SUCCEEDED, State.SUCCEEDED, Q]


@pytest.mark.parametrize(
    "wrong", [{"key": ""}, {"key": "x" * 201}, {"key": "a\0"}, {"at_once": 0}, {"at_once": 1001}], ids=str
)
def test_a_sequence_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        SequenceKey(**{"key": "k", **wrong})


# However a job ends


async def test_every_end_lets_the_next_one_in(hot: Connection) -> None:
    jobs = await some(hot, 7)
    worker = await start_worker(hot)

    async def take_one() -> ClaimedJob:
        (claimed,) = await take(hot, worker)
        return claimed

    await finish(hot, worker, await take_one())
    await fail(hot, worker, await take_one(), retryable=False)
    await cancel(hot, jobs[2])
    (claimed,) = await take(hot, worker)
    await cancel(hot, jobs[3])
    assert await state(hot, jobs[4]) is S, "a job that was asked to stop still runs"
    await fail(hot, worker, claimed, retryable=True)
    async with hot.transaction():
        await retention.delete(hot, await retention.lock(hot, [jobs[4]]))
    assert await states(hot, [*jobs[:4], *jobs[5:]]) == [
        *(State.SUCCEEDED, State.FAILED, State.CANCELLED, State.CANCELLED),
        *(Q, S),
    ]
    assert await find_contradictions(hot) == []


async def test_a_rescue_keeps_the_place_and_a_dead_letter_gives_it_up(hot: Connection, clock: Clock) -> None:
    first, second = await some(hot, 2)
    for number in range(3):
        worker = await start_worker(hot)
        assert len(await (take_isolated(hot, worker) if number else take(hot, worker))) == 1
        assert await state(hot, second) is S
        await clock.forward(TTL + 1)
        await rescue(hot, settle_time=NO_SETTLE)
    assert await states(hot, [first, second]) == [State.DEAD_LETTER, Q]


async def test_a_cancelled_parked_job_leaves_and_the_others_go_on(hot: Connection) -> None:
    first, second, third = await some(hot, 3)
    await cancel(hot, second)
    assert (await row(hot, second))["parked_for"] is None
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    await finish(hot, worker, claimed)
    assert await states(hot, [first, second, third]) == [State.SUCCEEDED, State.CANCELLED, Q]
    assert await find_contradictions(hot) == []


async def test_a_job_retried_by_hand_goes_to_the_end(hot: Connection) -> None:
    first, second = await some(hot, 2)
    await cancel(hot, first)
    third = (await some(hot, 1))[0]
    assert await retry(hot, first) is S
    assert await states(hot, [first, second, third]) == [S, Q, S]
    worker = await start_worker(hot)
    ran = []
    while claimed_jobs := await take(hot, worker):
        ran += [claimed.id for claimed in claimed_jobs]
        await finish(hot, worker, claimed_jobs[0])
    assert ran == [second, third, first]
    assert await events(hot, first) == ["cancelled", "retried", "succeeded"]


async def test_a_job_retried_alone_is_queued_at_once(hot: Connection) -> None:
    (only,) = await some(hot, 1)
    await cancel(hot, only)
    assert await retry(hot, only) is Q
    assert await find_contradictions(hot) == []


async def test_a_handler_ends_its_job_and_enqueues_the_next_in_one_transaction(hot: Connection, db: Database) -> None:
    await some(hot, 1)
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    async with db.transaction() as session:
        after = (await enqueue(session, a_job())).id
        await succeed(await driver(session), worker.id, [(claimed.id, claimed.token)])
    assert await state(hot, after) is Q


async def test_what_is_rolled_back_was_never_there(hot: Connection, connect: Connect) -> None:
    first, second = await some(hot, 2)
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    transaction = hot.transaction()
    await transaction.start()
    await finish(hot, worker, claimed)
    await enqueue(hot, a_job())
    await transaction.rollback()
    assert await states(hot, [first, second]) == [R, S]
    await finish(await connect(), worker, claimed)
    assert await states(hot, [first, second]) == [State.SUCCEEDED, Q]
    assert await count(hot) == 2


# Families


async def test_a_parked_parent_waits_for_its_children_and_for_its_turn(hot: Connection) -> None:
    (first,) = await some(hot, 1)
    worker = await start_worker(hot)
    (before,) = await take(hot, worker)
    family = await enqueue_family(hot, a_job(), [NewJob(OTHER, "acme")])
    parent = family.parent.id
    (child,) = await take(hot, worker)
    assert (await explain(hot, parent)).reason is Reason.CHILDREN
    await finish(hot, worker, child)
    assert await state(hot, parent) is S
    assert (await explain(hot, parent)).reason is Reason.SEQUENCE
    assert await find_contradictions(hot) == []
    await finish(hot, worker, before)
    assert await states(hot, [first, parent]) == [State.SUCCEEDED, Q]


async def test_a_parent_holds_its_place_while_it_waits_for_its_children(hot: Connection) -> None:
    (first,) = await some(hot, 1)
    worker = await start_worker(hot)
    (before,) = await take(hot, worker)
    family = await enqueue_family(hot, a_job(), [NewJob(OTHER, "acme")])
    (last,) = await some(hot, 1)
    await finish(hot, worker, before)
    parent = await row(hot, family.parent.id)
    assert (parent["state"], parent["parked_for"], parent["pending_children"]) == ("scheduled", None, 1)
    assert await state(hot, last) is S
    (child,) = await take(hot, worker)
    await finish(hot, worker, child)
    assert await states(hot, [first, family.parent.id, last]) == [State.SUCCEEDED, Q, S]
    assert await find_contradictions(hot) == []


async def test_children_may_be_in_a_sequence(hot: Connection) -> None:
    family = await enqueue_family(hot, NewJob(OTHER, "acme"), [a_job() for _ in range(3)])
    worker = await start_worker(hot)
    for one in family.children:
        (claimed,) = await take(hot, worker)
        assert claimed.id == one.id
        await finish(hot, worker, claimed)
    assert await state(hot, family.parent.id) is Q
    assert await find_contradictions(hot) == []


async def test_jobs_below_a_job_of_a_sequence_cannot_be_in_one(hot: Connection) -> None:
    with pytest.raises(Refused, match="wait for each other"):
        await enqueue_family(hot, a_job(), [a_job("another")])
    assert await count(hot) == 0
    top = await enqueue_family(hot, a_job(), [NewJob(OTHER, "acme")])
    with pytest.raises(Refused):
        await add_children(hot, top.parent.id, [a_job("another")])
    with pytest.raises(Refused):
        await enqueue_family(hot, NewJob(OTHER, "acme"), [a_job("another")], within=top.parent.id)
    assert await count(hot) == 2
    assert await find_contradictions(hot) == []


async def test_cancelling_a_family_lets_others_of_its_sequences_in(hot: Connection) -> None:
    family = await enqueue_family(hot, NewJob(OTHER, "acme"), [a_job(), a_job(), a_job("x")])
    after = [*await some(hot, 1), *await some(hot, 1, "x")]
    await cancel(hot, family.parent.id)
    assert await states(hot, after) == [Q, Q]
    assert await find_contradictions(hot) == []


# Many at once


async def test_an_open_transaction_delays_neither_enqueues_nor_ends(hot: Connection, connect: Connect) -> None:
    """What they cannot do now is a missed turn, which a worker takes after the commit."""
    (first,) = await some(hot, 1)
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    other = await connect()
    async with other.transaction():
        second = (await enqueue(other, a_job())).id
        async with asyncio.timeout(10):
            await finish(hot, worker, claimed)
            (third,) = await some(hot, 1)
        assert await take_missed_turns(hot) == 0.25, "still locked"
        assert await state(hot, third) is S
        assert (await next_due(hot)).job == 0
    assert await state(hot, second) is S
    assert (await promote_due(hot)).missed_turns
    assert await take_missed_turns(hot) is None
    assert await states(hot, [first, second, third]) == [State.SUCCEEDED, Q, S]
    assert await find_contradictions(hot) == []


async def test_a_next_job_that_somebody_has_locked_is_not_overtaken(hot: Connection, connect: Connect) -> None:
    first, second, third = await some(hot, 3)
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    other = await connect()
    async with other.transaction():
        await other.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", second)
        async with asyncio.timeout(10):
            await finish(hot, worker, claimed)
        assert await states(hot, [first, second, third]) == [State.SUCCEEDED, S, S]
        assert await take_missed_turns(hot) == 0.25
    assert await take_missed_turns(hot) is None
    assert await states(hot, [second, third]) == [Q, S]


async def test_a_next_job_that_is_being_cancelled_gives_its_turn_to_the_one_behind_it(
    hot: Connection, connect: Connect
) -> None:
    _, second, third = await some(hot, 3)
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    other = await connect()
    async with other.transaction():
        await cancel(other, second)
        await finish(hot, worker, claimed)
    await catch_up(hot)
    assert await states(hot, [second, third]) == [State.CANCELLED, Q]
    assert await find_contradictions(hot) == []


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_an_old_snapshot_loses_no_turn(hot: Connection, connect: Connect, isolation: Any) -> None:
    await some(hot, 1)
    worker = await start_worker(hot)
    (claimed,) = await take(hot, worker)
    other = await connect()
    async with other.transaction(isolation=isolation):
        await other.fetchval("SELECT count(*) FROM jobs")
        await finish(hot, worker, claimed)
        after = (await enqueue(other, a_job())).id
    await catch_up(hot)
    assert await state(hot, after) is Q


async def test_thousands_of_sequences_fit_into_one_transaction(hot: Connection) -> None:
    """Postgres has room for some thousand locks of this sort, for all sessions together."""
    async with hot.transaction():
        await enqueue_many(hot, [a_job(f"k{number % 3000}") for number in range(6000)])
        for number in range(300):
            await enqueue(hot, a_job(f"one by one {number}"))
        locks = await hot.fetchval(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        assert locks <= 200 + 1  # and the announcement's own
    await catch_up(hot)
    assert await count(hot, "state = 'queued'") == 3300
    assert await find_contradictions(hot) == []


async def test_callers_that_take_many_keys_in_any_order_do_not_deadlock(connect: Connect, hot: Connection) -> None:
    async def caller(seed: int) -> None:
        connection = await connect()
        rng = random.Random(seed)
        for _ in range(8):
            async with connection.transaction():
                for key in rng.sample("abcdef", 4):
                    await enqueue(connection, a_job(key))
                    await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(*(caller(seed) for seed in range(6)))
    await catch_up(hot)
    assert await count(hot, "state = 'queued'") == 6
    assert await find_contradictions(hot) == []


async def test_under_load_no_turn_is_lost_and_none_is_taken_twice(db: Database, hot: Connection) -> None:
    """Enqueues, ends, failures, cancellations, deletions and crashes at once."""
    # So many keys that some sequence is always empty: that is when two enqueues could both let their job in.
    keys, total = "abcdefgh", 150
    limits = {key: 3 if key == "h" else 1 for key in keys}
    over = asyncio.Event()

    async def enqueuer(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(total // 3):
            async with db.hot() as connection, connection.transaction():
                for key in rng.sample(keys, rng.randint(1, 2)):
                    await enqueue(connection, a_job(key, limits[key]))
                await asyncio.sleep(0.002)

    async def runner(seed: int) -> None:
        rng = random.Random(seed)
        async with db.hot() as connection:
            worker = await start_worker(connection)
            while not over.is_set():
                claimed_jobs = await take(connection, worker, 4) or await take_isolated(connection, worker)
                if not claimed_jobs:
                    await catch_up_once(connection)
                    await asyncio.sleep(0.005)
                    continue
                if rng.random() < 0.05:
                    await rescue_worker(connection, worker.id)
                    worker = await start_worker(connection)
                    continue
                await asyncio.sleep(0.01)  # a run takes its time, so that another could overlap
                failed = [claimed for claimed in claimed_jobs if rng.random() < 0.3]
                await succeed(connection, worker.id, [(one.id, one.token) for one in claimed_jobs if one not in failed])
                for claimed in failed:
                    await fail(connection, worker, claimed, retryable=rng.random() < 0.5)
                await connection.execute(
                    "UPDATE jobs SET run_at = now() WHERE state = 'scheduled' AND run_at < 'infinity'"
                )

    async def catch_up_once(connection: Connection) -> None:
        await promote_due(connection)
        await take_missed_turns(connection)

    async def meddler(seed: int) -> None:
        rng = random.Random(seed)
        async with db.hot() as connection:
            while not over.is_set():
                waiting = await connection.fetch("SELECT id FROM jobs WHERE state IN ('scheduled', 'queued') LIMIT 20")
                if waiting:
                    async with connection.transaction():
                        job_id = rng.choice(waiting)["id"]
                        locked = await connection.fetchval(
                            "SELECT id FROM jobs WHERE id = $1 AND state <> 'running' AND finished_at IS NULL"
                            " FOR UPDATE SKIP LOCKED",
                            job_id,
                        )
                        if locked and rng.random() < 0.5:
                            await cancel(connection, job_id)
                        elif locked:
                            await retention.delete(connection, [job_id])
                await asyncio.sleep(0.01)

    async def until_done() -> None:
        await asyncio.gather(*(enqueuer(seed) for seed in range(3)))
        async with db.hot() as connection:
            while await count(connection, "finished_at IS NULL"):
                await asyncio.sleep(0.02)
        over.set()

    async with asyncio.timeout(100), asyncio.TaskGroup() as tasks:
        tasks.create_task(until_done())
        for seed in range(2):
            tasks.create_task(runner(seed))
        tasks.create_task(meddler(7))
    assert await hot.fetch(TOO_MANY_AT_ONCE) == []
    assert await find_contradictions(hot) == []
    assert await count(hot, "state = 'succeeded'") > 30


# Healing


async def test_a_turn_that_nobody_took_is_found(hot: Connection) -> None:
    """A worker of release 0.1.0 ends a job and knows nothing of sequences."""
    await some(hot, 2, "fine")
    lost = [(await some(hot, 3, f"lost {number}"))[1] for number in range(3)]
    await hot.execute("DELETE FROM jobs WHERE sequence_key LIKE 'lost%' AND parked_for IS NULL")
    stalled, last = await find_stalled(hot, SequenceId("", "", ""), 2)
    assert [one.key for one in stalled] == ["lost 0"]
    assert last == SequenceId("acme", "work", "lost 0")
    stalled, last = await find_stalled(hot, last, 100)
    assert [one.key for one in stalled] == ["lost 1", "lost 2"]
    assert last is not None
    assert await find_stalled(hot, last, 100) == ([], None)
    assert await states(hot, lost) == [S, S, S]


# Why isn't it running?


async def test_explain_says_for_how_many_it_waits(hot: Connection) -> None:
    jobs = await some(hot, 3, "endpoint:42")
    first, last = await explain(hot, jobs[1]), await explain(hot, jobs[2])
    assert first.reason is last.reason is Reason.SEQUENCE
    assert first.sentence == "It is waiting for 1 earlier job of the sequence endpoint:42; 1 may run at once."
    assert last.sentence.startswith("It is waiting for 2 earlier jobs of the sequence endpoint:42")
    assert last.facts == {"sequence": "endpoint:42", "at_once": 1, "earlier": 2, "or_more": False}
    assert (await explain(hot, jobs[0])).reason is Reason.NO_WORKER


async def test_other_jobs_send_no_statement_more(hot: Connection) -> None:
    worker = await start_worker(hot)
    sent: list[str] = []
    hot.add_query_logger(lambda query: sent.append(query.query))
    await one_job(hot)  # asyncpg asks about types, once
    await take(hot, worker)
    sent.clear()
    await one_job(hot)
    assert len(sent) == 1
    (claimed,) = await take(hot, worker)
    sent.clear()
    await finish(hot, worker, claimed)
    assert len(sent) == 1
    assert "sequences" not in sent[0]
