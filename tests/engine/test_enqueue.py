"""An enqueued job exists exactly if its caller's transaction commits; what cannot be enqueued is refused cleanly."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from support.clock import Clock
from support.engine import (
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
)
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Forbidden, Refused
from waybill.ids import new_id
from waybill_engine import JobKind, NewJob, Queue, State, Unique, UniqueScope, enqueue, enqueue_many
from waybill_engine.new_job import MAX_PAYLOAD
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
    _, claimed = await running_job(hot, payload=payload)
    assert claimed.payload == payload


async def test_the_databases_clock_decides_when_a_delayed_job_is_due(hot: Connection, clock: Clock) -> None:
    await clock.forward(86_400)
    delayed = await row(hot, await one_job(hot, delay=30.0))
    assert delayed["state"] == "scheduled"
    assert delayed["run_at"] - delayed["created_at"] == timedelta(seconds=30)
    yesterday = datetime.now(UTC) + timedelta(hours=1)  # to come by this process's clock, past by the database's
    assert await state(hot, await one_job(hot, run_at=yesterday)) is State.QUEUED


async def test_many_jobs_are_answered_in_their_order(hot: Connection) -> None:
    taken = await enqueue(hot, unique("c"))
    jobs = [unique(key) for key in "dbcabd"]
    answers = await enqueue_many(hot, jobs)
    assert [one.created for one in answers] == [True, True, False, True, False, False]
    assert [one.id for one in answers] == [
        jobs[0].id,
        jobs[1].id,
        taken.id,
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
    assert [claimed.id for claimed in await take(other, worker)] == [job_id]


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
    "tracestate too long": {"tracestate": "x" * 513},
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


async def test_tenants_may_have_odd_names(hot: Connection) -> None:
    odd = ["O'Brien; --", "läden/ü", "a b\tc", "🦆", "{x,y}", 'q"q', "\\x00", "%s $1", "NULL", " "]
    for tenant in odd:
        first = await enqueue(hot, NewJob(WORK, tenant, unique=Unique(tenant)))
        assert await enqueue(hot, NewJob(WORK, tenant, unique=Unique(tenant))) == first._replace(created=False)
    claimed_jobs = await take(hot, await start_worker(hot))
    assert [(claimed.tenant, claimed.owner) for claimed in claimed_jobs] == [(tenant, tenant) for tenant in odd]


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
    facts: dict[str, Any] = {
        "owner": "o",
        "priority": -1,
        "cost": 7,
        "payload": {"a": "ü"},
        "traceparent": "00-ab",
        "tracestate": "v=1",
    }
    inserted = await enqueue_many(hot, [NewJob(WORK, "acme", **facts), NewJob(WORK, "acme", delay=60, **facts)])
    copied = await enqueue_many(hot, [NewJob(WORK, "acme", delay=60 * (number % 2), **facts) for number in range(200)])
    skipped = ("id", "run_at", "created_at", "updated_at")

    def comparable(one: asyncpg.Record) -> dict[str, Any]:
        late = one["run_at"] - one["created_at"]
        return {name: value for name, value in one.items() if name not in skipped} | {"late": late}

    first, second = [comparable(await row(hot, one.id)) for one in inserted]
    for number, one in enumerate(copied):
        assert comparable(await row(hot, one.id)) == (second if number % 2 else first)
