"""An enqueued job exists exactly if its caller's transaction does, once per unique key, and says no cleanly."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from support.clock import Clock
from support.engine import (
    OTHER,
    WORK,
    Connect,
    count,
    one_job,
    row,
    running_job,
    some_jobs,
    start_worker,
    state,
    take,
    until_blocked,
)
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Forbidden, Refused
from waybill.ids import new_id
from waybill_engine import JobKind, NewJob, Queue, State, Unique, UniqueScope, enqueue, enqueue_many
from waybill_engine.control import cancel
from waybill_engine.enqueue import MAX_PAYLOAD
from waybill_engine.finish import succeed
from waybill_engine.lanes import Lane, announced
from waybill_engine.retry import RetryPolicy
from waybill_engine.tenants import grant_priority


def unique(key: str = "k", scope: UniqueScope = UniqueScope.ACTIVE, window: float | None = None) -> NewJob:
    return NewJob(WORK, "acme", unique=Unique(key, scope, window))


# What is written


async def test_a_job_carries_the_rules_of_its_kind(hot: Connection) -> None:
    kind = JobKind("slow", queue="night", time_limit=12.5, retry=RetryPolicy(retries=6), max_crashes=2)
    job = await row(hot, (await enqueue(hot, NewJob(kind, "acme", {"file": "ü.pdf"}, traceparent="00-a-b-01"))).id)
    assert (job["kind"], job["queue"], job["time_limit"]) == ("slow", "night", 12.5)
    assert (job["max_attempts"], job["max_crashes"]) == (7, 2)
    assert (job["state"], job["attempts"], job["crashes"], job["lease_token"]) == ("queued", 0, 0, 0)
    assert (job["tenant"], job["owner"], job["traceparent"]) == ("acme", "acme", "00-a-b-01")


async def test_the_payload_comes_back_as_it_went_in(hot: Connection) -> None:
    payload: dict[str, Any] = {
        "text": "naïve ✓ 🦆 \" \\ \u2028 '; DROP TABLE jobs; --",
        "deep": {"list": [1, -0.5, None, True, [], {}]},
        "big": 2**63,
        "": "an empty name",
    }
    _, lease = await running_job(hot, payload=payload)
    assert lease.payload == payload


async def test_the_databases_clock_decides_when_a_delayed_job_is_due(hot: Connection, clock: Clock) -> None:
    await clock.forward(86_400)
    delayed = await row(hot, await one_job(hot, delay=30.0))
    assert delayed["state"] == "scheduled"
    assert delayed["run_at"] - delayed["created_at"] == timedelta(seconds=30)
    yesterday = datetime.now(UTC) + timedelta(hours=1)  # to come by this process's clock, past by the database's
    assert await state(hot, await one_job(hot, run_at=yesterday)) is State.QUEUED


async def test_many_jobs_are_answered_in_their_order(hot: Connection) -> None:
    held = await enqueue(hot, unique("c"))
    jobs = [unique(key) for key in "dbcabd"]
    answers = await enqueue_many(hot, jobs)
    assert [one.created for one in answers] == [True, True, False, True, False, False]
    assert [one.id for one in answers] == [
        jobs[0].id,
        jobs[1].id,
        held.id,
        jobs[3].id,
        jobs[1].id,
        jobs[0].id,
    ]


async def test_enqueueing_nothing_is_nothing(hot: Connection) -> None:
    assert await enqueue_many(hot, []) == []


async def test_ten_thousand_jobs_go_in_with_one_statement(hot: Connection) -> None:
    jobs = [NewJob(WORK, f"tenant-{n % 7}", {"n": n}, priority=-(n % 3)) for n in range(10_000)]
    answers = await enqueue_many(hot, jobs)
    assert [one.id for one in answers] == [job.id for job in jobs]
    assert all(one.created for one in answers)
    assert await count(hot, "state = 'queued'") == 10_000


async def test_ten_thousand_jobs_sent_again_cost_a_few_statements_not_ten_thousand(db: Database) -> None:
    jobs = [unique(f"file-{n}") for n in range(10_000)]
    async with db.hot() as connection:
        first = await enqueue_many(connection, jobs)
        asked: list[object] = []
        connection.add_query_logger(asked.append)
        again = await enqueue_many(connection, [replace(job, id=new_id()) for job in jobs])
        connection.remove_query_logger(asked.append)
    assert [one.id for one in again] == [one.id for one in first]
    assert len(asked) < 20


# The caller's transaction


async def test_a_rolled_back_enqueue_leaves_nothing(hot: Connection) -> None:
    transaction = hot.transaction()
    await transaction.start()
    await some_jobs(hot, 3)
    await enqueue(hot, unique())
    await transaction.rollback()
    assert await count(hot) == 0
    assert (await enqueue(hot, unique())).created


async def test_nobody_sees_a_job_before_its_transaction_commits(connect: Connect) -> None:
    mine, other = await connect(), await connect()
    worker = await start_worker(other)
    async with mine.transaction():
        job_id = await one_job(mine)
        assert await take(other, worker) == []
    assert [lease.id for lease in await take(other, worker)] == [job_id]


async def test_a_session_commits_its_rows_and_its_jobs_together(db: Database, hot: Connection) -> None:
    async with db.transaction() as session:
        session.add(Queue(name="mine"))
        job = await enqueue(session, NewJob(WORK, "acme"))
        assert await hot.fetchval("SELECT count(*) FROM queues") == 0
        assert await count(hot) == 0
    assert await hot.fetchval("SELECT count(*) FROM queues") == 1
    assert await state(hot, job.id) is State.QUEUED


async def test_a_session_that_fails_leaves_neither_its_rows_nor_its_jobs(db: Database, hot: Connection) -> None:
    async def fail_after_enqueueing() -> None:
        async with db.transaction() as session:
            await enqueue(session, NewJob(WORK, "acme"))  # before the session sent anything of its own
            session.add(Queue(name="mine"))
            await session.flush()
            raise RuntimeError("the handler fails")

    with pytest.raises(RuntimeError):
        await fail_after_enqueueing()
    assert await hot.fetchval("SELECT count(*) FROM queues") == 0
    assert await count(hot) == 0


async def test_workers_are_told_once_per_lane_when_the_transaction_commits(connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await listener.add_listener("waybill_jobs", lambda *told: heard.put_nowait(str(told[3])))
    async with mine.transaction():
        by_day = await some_jobs(mine, 50)
        by_night = await some_jobs(mine, 50, queue="night")
        await listener.execute("SELECT 1")
        assert heard.empty()
    assert {announced(await heard.get()), announced(await heard.get())} == {
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


# Unique keys


async def test_while_a_job_is_active_its_key_is_taken_and_then_free(hot: Connection) -> None:
    first = await enqueue(hot, unique())
    assert await enqueue(hot, unique()) == replace(first, created=False)
    worker = await start_worker(hot)
    (lease,) = await take(hot, worker)
    assert await enqueue(hot, unique()) == replace(first, created=False)
    await succeed(hot, worker.id, [(lease.id, lease.token)])
    assert (await enqueue(hot, unique())).created


async def test_a_key_kept_for_ever_outlives_its_job(hot: Connection) -> None:
    first = await enqueue(hot, unique(scope=UniqueScope.FOREVER))
    await cancel(hot, first.id)
    assert await enqueue(hot, unique(scope=UniqueScope.FOREVER)) == replace(first, created=False)


async def test_a_window_rolls(hot: Connection, clock: Clock) -> None:
    first = await enqueue(hot, unique(scope=UniqueScope.WINDOW, window=60))
    await clock.forward(30)
    assert await enqueue(hot, unique(scope=UniqueScope.WINDOW, window=60)) == replace(first, created=False)
    await clock.forward(31)  # counted from the first, not from the last try
    second = await enqueue(hot, unique(scope=UniqueScope.WINDOW, window=60))
    assert second.created
    await clock.forward(59)
    assert await enqueue(hot, unique(scope=UniqueScope.WINDOW, window=60)) == replace(second, created=False)
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
    assert await enqueue(hot, unique(scope=asked)) == replace(holders[asked], created=False)


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
    tokens = {lease.id: lease.token for lease in await take(finishing, worker)}
    await clock.forward(61)
    async with finishing.transaction():
        await succeed(finishing, worker.id, [(older.id, tokens[older.id])])
        waiting = asyncio.create_task(
            enqueue_many(enqueueing, [unique(key, UniqueScope.WINDOW, 60) for key in ("a", "b")])
        )
        await until_blocked(finishing, enqueueing)
        await succeed(finishing, worker.id, [(younger.id, tokens[younger.id])])
    assert [one.created for one in await waiting] == [True, True]


# What is refused


async def test_an_id_that_is_taken_is_said_to_be(hot: Connection) -> None:
    job = NewJob(WORK, "acme")
    await enqueue(hot, job)
    with pytest.raises(Refused, match=str(job.id)):
        await enqueue(hot, job)


async def test_a_payload_at_the_limit_goes_in_and_one_beyond_does_not(hot: Connection) -> None:
    frame = len('{"x":""}')
    await enqueue(hot, NewJob(WORK, "acme", {"x": "y" * (MAX_PAYLOAD - frame)}))
    with pytest.raises(Refused, match="payload"):
        await enqueue(hot, NewJob(WORK, "acme", {"x": "y" * (MAX_PAYLOAD - frame + 1)}))


REFUSED: dict[str, dict[str, Any]] = {
    "priority too high": {"priority": 40_000},
    "priority too low": {"priority": -40_000},
    "cost too large": {"cost": 2**63},
    "cost negative": {"cost": -1},
    "tenant with NUL": {"tenant": "a\0b"},
    "tenant half a surrogate": {"tenant": "a\ud800"},
    "tenant empty": {"tenant": ""},
    "tenant huge": {"tenant": "t" * 10_000, "unique": Unique("k")},
    "owner with NUL": {"owner": "a\0b"},
    "payload with NUL": {"payload": {"text": "a\0b"}},
    "payload with NUL in a name": {"payload": {"a\0b": 1}},
    "payload half a surrogate": {"payload": {"text": "\udc80"}},
    "payload not a number": {"payload": {"x": math.nan}},
    "payload not JSON": {"payload": {"x": datetime.now(UTC)}},
    "queue of no worker": {"queue": "No Such Queue!"},
    "queue huge": {"queue": "q" * 9000},
    "delay not a number": {"delay": math.nan},
    "delay endless": {"delay": math.inf},
    "delay beyond the calendar": {"delay": 1e15},
    "run_at without a time zone": {"run_at": datetime(2030, 1, 1)},  # noqa: DTZ001
    "traceparent with NUL": {"traceparent": "\0"},
}


async def test_what_cannot_be_stored_is_refused_before_it_breaks_the_callers_transaction(hot: Connection) -> None:
    wrong: dict[str, str] = {}
    for what, facts in REFUSED.items():
        try:
            async with hot.transaction():
                try:
                    await enqueue(hot, NewJob(**{"kind": WORK, "tenant": "acme", **facts}))
                    wrong[what] = "was taken"
                except Refused:
                    await hot.execute("SELECT 1")  # the transaction is still good
        except Exception as error:  # noqa: BLE001 - anything but a refusal is the finding
            wrong[what] = repr(error)
    assert wrong == {}


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
    assert again == replace(first, created=False)


async def test_tenants_may_have_odd_names(hot: Connection) -> None:
    odd = ["O'Brien; --", "läden/ü", "a b\tc", "🦆", "{x,y}", 'q"q', "\\x00", "%s $1", "NULL", " "]
    for tenant in odd:
        first = await enqueue(hot, NewJob(WORK, tenant, unique=Unique(tenant)))
        assert await enqueue(hot, NewJob(WORK, tenant, unique=Unique(tenant))) == replace(first, created=False)
    leases = await take(hot, await start_worker(hot))
    assert [(lease.tenant, lease.owner) for lease in leases] == [(tenant, tenant) for tenant in odd]


# Priority


async def test_a_priority_above_the_default_must_have_been_granted(hot: Connection) -> None:
    wanted = NewJob(WORK, "acme", priority=3)
    with pytest.raises(Forbidden, match="waybill tenant priority acme 3"):
        await enqueue(hot, wanted)
    await grant_priority(hot, "acme", 2)
    with pytest.raises(Forbidden):
        await enqueue_many(hot, [NewJob(WORK, "acme", priority=1), wanted, NewJob(WORK, "acme")])
    assert await count(hot) == 0
    await grant_priority(hot, "acme", 3)
    assert (await enqueue(hot, wanted)).created
    assert (await enqueue(hot, NewJob(WORK, "zeta", priority=-5))).created  # stepping back is free
    assert (await enqueue(hot, NewJob(WORK, "zeta", priority=9), as_operator=True)).created


async def test_a_copied_batch_is_refused_whole_when_an_id_is_taken_and_the_transaction_goes_on(hot: Connection) -> None:
    taken = NewJob(WORK, "acme")
    await enqueue(hot, taken)
    async with hot.transaction():
        with pytest.raises(Refused, match="ids already"):
            await enqueue_many(hot, [*(NewJob(WORK, "acme") for _ in range(200)), taken])
        await enqueue(hot, NewJob(WORK, "acme"))
    assert await count(hot) == 2


async def test_a_copied_batch_is_like_an_inserted_one(hot: Connection) -> None:
    """Above a certain number jobs go in by COPY; nobody can tell."""
    facts: dict[str, Any] = {"owner": "o", "priority": -1, "cost": 7, "payload": {"a": "ü"}, "traceparent": "00-ab"}
    inserted = await enqueue_many(hot, [NewJob(WORK, "acme", **facts), NewJob(WORK, "acme", delay=60, **facts)])
    copied = await enqueue_many(hot, [NewJob(WORK, "acme", delay=60 * (number % 2), **facts) for number in range(200)])
    skipped = ("id", "run_at", "created_at", "updated_at")

    def comparable(one: asyncpg.Record) -> dict[str, Any]:
        late = one["run_at"] - one["created_at"]
        return {name: value for name, value in one.items() if name not in skipped} | {"late": late}

    first, second = [comparable(await row(hot, one.id)) for one in inserted]
    for number, one in enumerate(copied):
        assert comparable(await row(hot, one.id)) == (second if number % 2 else first)
