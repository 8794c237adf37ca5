"""The SQL function `waybill_enqueue` does what `enqueue` does: the same row, announcement and refusals."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from support.clock import Clock
from support.engine import WORK, Connect, find_contradictions, row, start_worker, take
from waybill.db.database import Connection
from waybill.errors import Forbidden, Refused
from waybill_engine import Enqueued, JobKind, NewJob, RetryPolicy, SequenceKey, Unique, UniqueScope, enqueue
from waybill_engine.announcements import LANES, SCHEDULED, parse_lane
from waybill_engine.control import cancel
from waybill_engine.finish import succeed
from waybill_engine.kind_limits import record_limits
from waybill_engine.sequences import take_missed_turns
from waybill_engine.tenants import grant_priority

NINETY_SECONDS = timedelta(seconds=90)

SLOW = JobKind("slow", queue="night", time_limit=0.5, max_crashes=2, retry=RetryPolicy(schedule=(1, 2)))


@pytest.fixture
async def on(connect: Connect) -> Connection:
    """A connection to a database where a worker has made its kinds known."""
    connection = await connect()
    await record_limits(connection, [WORK, SLOW])
    return connection


async def call(connection: Connection, kind: object, tenant: object, /, **named: object) -> Enqueued:
    """Calls the function as a program in another language would."""
    values = [kind, tenant, *(json.dumps(value) if name == "payload" else value for name, value in named.items())]
    names = "".join(f", {name} => ${number}" for number, name in enumerate(named, start=3))
    found = await connection.fetchrow(f"SELECT id, created FROM waybill_enqueue($1, $2{names})", *values)
    assert found is not None
    return Enqueued(found["id"], created=found["created"])


def arguments(job: NewJob) -> dict[str, Any]:
    """The function's arguments for a job, without those that have their default."""
    unique = job.unique
    facts = {
        "payload": job.payload,
        "owner": job.owner,
        "queue": job.queue,
        "priority": job.priority,
        "cost": job.cost,
        "delay": job.delay,
        "run_at": job.run_at,
        "traceparent": job.traceparent,
        "tracestate": job.tracestate,
        "unique_key": unique.key if unique else None,
        "unique_scope": unique.scope.value if unique and unique.scope is not UniqueScope.ACTIVE else None,
        "unique_window": unique.window if unique else None,
    }
    plain = NewJob(job.kind, job.tenant)
    return {name: value for name, value in facts.items() if value != getattr(plain, name, None)}


async def announced(connect: Connect) -> tuple[Connection, asyncio.Queue[tuple[str, str]]]:
    listener = await connect()
    heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    for channel in (LANES, SCHEDULED):
        await listener.add_listener(channel, lambda *told: heard.put_nowait((str(told[2]), str(told[3]))))
    return listener, heard


ALIKE = {
    "plain": NewJob(WORK, "acme"),
    "payload": NewJob(SLOW, "acme", {"numbers": [1, 2.5], "name": "Åsa", "more": {"nothing": None}}),
    "everything": NewJob(
        WORK, "acme", {}, "session-1", "other", priority=3, cost=77, traceparent="00-ab-cd-01", tracestate="v=1"
    ),
    "low priority": NewJob(WORK, "acme", priority=-5),
    "delay": NewJob(WORK, "acme", delay=90.0),
    "far ahead": NewJob(WORK, "acme", run_at=datetime(2999, 1, 1, tzinfo=UTC)),
    "long ago": NewJob(WORK, "acme", run_at=datetime(2001, 1, 1, tzinfo=UTC)),
    "unique": NewJob(WORK, "acme", unique=Unique("k")),
    "unique for ever": NewJob(WORK, "acme", unique=Unique("k", UniqueScope.FOREVER)),
    "unique in a window": NewJob(WORK, "acme", unique=Unique("k", UniqueScope.WINDOW, 60.0)),
}


@pytest.mark.parametrize("job", ALIKE.values(), ids=ALIKE)
async def test_it_writes_the_row_and_makes_the_announcement_of_enqueue(
    on: Connection, connect: Connect, job: NewJob
) -> None:
    await grant_priority(on, "acme", 5)
    _, heard = await announced(connect)
    rows: list[Mapping[str, Any]] = []
    said: list[tuple[Any, ...]] = []
    for by_function in (False, True):
        async with on.transaction():
            if by_function:
                done = await call(on, job.kind.name, job.tenant, **arguments(job))
            else:
                done = await enqueue(on, job)
            assert done.created
            now = await on.fetchval("SELECT now()")
        written = dict(await row(on, done.id))
        for moment in ("run_at", "unique_until", "created_at", "updated_at"):
            if written[moment] is not None and written[moment].year < 2999:
                written[moment] -= now
        rows.append({name: value for name, value in written.items() if name != "id"})
        channel, text = await asyncio.wait_for(heard.get(), 10)
        if channel == LANES:
            told = parse_lane(text)
            assert told.first.created_at == now
            said.append((channel, told.lane, told.jobs))
        else:
            said.append((channel, round(float(text), -1)))
        await on.execute("DELETE FROM jobs")
    if job.run_at is not None and job.run_at.year < 2999:
        rows = [{**one, "run_at": None} for one in rows]
    assert rows[0] == rows[1]
    assert said[0] == said[1]


async def test_jobs_enqueued_in_sql_are_claimed_in_their_order_among_the_others(on: Connection) -> None:
    jobs = []
    for number in range(20):
        by_function = number % 2
        jobs.append((await call(on, "work", "acme")) if by_function else (await enqueue(on, NewJob(WORK, "acme"))))
    ids = [job.id for job in jobs]
    assert {one.version for one in ids} == {7}
    assert {one.variant for one in ids} == {"specified in RFC 4122"}
    assert [one.id for one in await take(on, await start_worker(on))] == ids
    assert await find_contradictions(on) == []


async def test_jobs_of_a_sequence_run_in_their_order_whoever_enqueued_them(on: Connection) -> None:
    ids = []
    for number in range(6):
        job = NewJob(WORK, "acme", sequence=SequenceKey("k", at_once=2))
        ids.append((await enqueue(on, job) if number % 2 else await call_in_sequence(on)).id)
    worker = await start_worker(on)
    ran = []
    for _ in range(3):
        while await take_missed_turns(on) is not None:
            pass
        claimed = await take(on, worker)
        assert len(claimed) == 2
        ran += [one.id for one in claimed]
        await succeed(on, worker.id, [(one.id, one.token) for one in claimed])
    assert ran == ids
    assert await find_contradictions(on) == []


async def call_in_sequence(on: Connection) -> Enqueued:
    return await call(on, "work", "acme", sequence_key="k", sequence_at_once=2)


async def test_a_worker_is_told_of_a_job_in_a_sequence(on: Connection, connect: Connect) -> None:
    _, heard = await announced(connect)
    done = await call(on, "work", "acme", sequence_key="k", delay=90.0)
    assert await asyncio.wait_for(heard.get(), 10) == (SCHEDULED, "0")
    assert await take_missed_turns(on) is None
    job = await row(on, done.id)
    assert (job["state"], job["parked_for"], job["run_at"] - job["created_at"]) == ("scheduled", None, NINETY_SECONDS)


async def test_many_in_one_transaction_keep_their_order(on: Connection) -> None:
    await on.execute(
        "SELECT waybill_enqueue('work', 'acme', jsonb_build_object('n', n)) FROM generate_series(1, 200) n"
    )
    claimed = await take(on, await start_worker(on), 200)
    assert [job.payload["n"] for job in claimed] == list(range(1, 201))


async def test_it_commits_and_rolls_back_with_the_caller(on: Connection) -> None:
    transaction = on.transaction()
    await transaction.start()
    await call(on, "work", "acme")
    await transaction.rollback()
    assert await on.fetchval("SELECT count(*) FROM jobs") == 0


async def test_a_trigger_enqueues(on: Connection) -> None:
    await on.execute("""
        CREATE TABLE orders (customer text);
        CREATE FUNCTION thank() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM waybill_enqueue('work', 'shop', jsonb_build_object('to', NEW.customer));
            RETURN NULL;
        END $$;
        CREATE TRIGGER thank AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION thank();
        INSERT INTO orders VALUES ('ada@example.com');
    """)
    (claimed,) = await take(on, await start_worker(on))
    assert (claimed.tenant, claimed.payload) == ("shop", {"to": "ada@example.com"})


async def test_the_examples_of_the_handbook_work(on: Connection, database_url: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "handlers.md").read_text()
    (sql,) = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (python,) = re.findall(r"^```python\n(import psycopg\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    make_report = JobKind("make_report")
    await record_limits(on, [make_report])
    await on.execute("CREATE TABLE orders (amount integer)")
    await on.execute(sql)
    await on.execute("INSERT INTO orders VALUES (7)")
    await asyncio.to_thread(exec, python, {"url": database_url, "MAKE_REPORT": make_report})
    payloads = await on.fetch("SELECT payload->>'numbers' AS numbers FROM jobs ORDER BY id")
    # The trigger fires for the second order, too.
    assert [one["numbers"] for one in payloads] == ["[1, 2, 3]", "[7]", "[42]", "[42]"]


# Unique keys


async def test_a_key_that_is_taken_answers_with_the_job_that_has_it(on: Connection, clock: Clock) -> None:
    for named in ({}, {"unique_scope": "forever"}):
        first = await call(on, "work", "acme", unique_key="k", **named)
        again = await call(on, "work", "acme", unique_key="k", **named)
        assert (again.id, again.created) == (first.id, False)
    assert (await call(on, "work", "globex", unique_key="k")).created
    assert (await call(on, "slow", "acme", unique_key="k")).created
    window = await call(on, "work", "acme", unique_key="w", unique_window=60)
    assert (await call(on, "work", "acme", unique_key="w", unique_window=60)).id == window.id
    await clock.forward(61)
    assert (await call(on, "work", "acme", unique_key="w", unique_window=60)).created


async def test_a_key_of_an_ended_job_is_free_and_both_ways_share_the_keys(on: Connection) -> None:
    first = await call(on, "work", "acme", unique_key="k")
    assert (await enqueue(on, NewJob(WORK, "acme", unique=Unique("k")))).id == first.id
    await cancel(on, first.id)
    second = await enqueue(on, NewJob(WORK, "acme", unique=Unique("k")))
    assert second.created
    assert (await call(on, "work", "acme", unique_key="k")).id == second.id


async def test_callers_at_once_create_one_job(on: Connection, connect: Connect) -> None:
    callers = [await connect() for _ in range(6)]
    answers = await asyncio.gather(*(call(one, "work", "acme", unique_key="k") for one in callers))
    assert len({answer.id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1


# Refusals

LONG = "x" * 201
WRONG: list[dict[str, Any]] = [
    {"tenant": ""},
    {"tenant": LONG},
    {"owner": ""},
    {"owner": LONG},
    {"priority": 40_000},
    {"priority": -40_000},
    {"cost": 0},
    {"delay": -1.0},
    {"delay": float("nan")},
    {"delay": 1e12},
    {"run_at": datetime(3001, 1, 1, tzinfo=UTC)},
    {"run_at": datetime(1969, 1, 1, tzinfo=UTC)},
    {"traceparent": LONG},
    {"tracestate": LONG * 3},
    {"payload": {"big": "x" * 66_000}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=list)
async def test_it_refuses_what_enqueue_refuses_in_the_same_words(on: Connection, wrong: dict[str, Any]) -> None:
    named = {"tenant": "acme", **wrong}
    with pytest.raises(Refused) as in_python:
        await enqueue(on, NewJob(WORK, **named))
    with pytest.raises(asyncpg.InvalidParameterValueError) as in_sql:
        await call(on, "work", named.pop("tenant"), **named)
    assert str(in_sql.value) == in_python.value.message


@pytest.mark.parametrize(
    "wrong",
    [
        {"unique_key": ""},
        {"unique_key": "x" * 501},
        {"unique_key": "k", "unique_window": 0},
        {"unique_key": "k", "unique_scope": "window"},
        {"unique_key": "k", "unique_scope": "forever", "unique_window": 5},
        {"unique_key": "k", "unique_scope": "sometimes"},
        {"unique_scope": "forever"},
        {"unique_window": 5},
        {"payload": [1, 2]},
        {"queue": "No Queue"},
        {"max_attempts": 0},
        {"max_crashes": 1001},
        {"time_limit": 0},
        {"time_limit": float("nan")},
    ],
    ids=str,
)
async def test_it_refuses_what_a_python_program_could_not_even_say(on: Connection, wrong: dict[str, Any]) -> None:
    with pytest.raises(asyncpg.InvalidParameterValueError):
        await call(on, "work", "acme", **wrong)
    assert await on.fetchval("SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize(
    ("payload", "fits"),
    [
        ({"x": [1] * 32_764}, True),  # 65,535 bytes of compact JSON, and twice as much as Postgres writes it
        ({"x": [1] * 32_765}, False),
        ({"x": '", : ' * 9_000}, True),
        ({"x": "ä" * 32_764}, True),
        ({"x": "ä" * 32_765}, False),
    ],
    ids=["a list that fits", "one more", "punctuation", "umlauts", "one more umlaut"],
)
async def test_the_limit_on_payloads_is_that_of_enqueue(on: Connection, payload: dict[str, Any], fits: bool) -> None:
    assert (len(json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()) <= 65_536) is fits
    if fits:
        await enqueue(on, NewJob(WORK, "acme", payload))
        assert (await call(on, "work", "acme", payload=payload)).created
    else:
        with pytest.raises(Refused):
            await enqueue(on, NewJob(WORK, "acme", payload))
        with pytest.raises(asyncpg.InvalidParameterValueError, match="at most 65536 bytes"):
            await call(on, "work", "acme", payload=payload)


async def test_an_id_that_is_taken_is_refused(on: Connection) -> None:
    first = await call(on, "work", "acme")
    with pytest.raises(asyncpg.InvalidParameterValueError, match=f"There is a job with the id {first.id} already"):
        await call(on, "work", "acme", job_id=first.id)


async def test_a_priority_above_the_default_needs_the_same_grant(on: Connection) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError) as refused:
        await call(on, "work", "acme", priority=2)
    with pytest.raises(Forbidden) as in_python:
        await enqueue(on, NewJob(WORK, "acme", priority=2))
    assert f"{refused.value.args[0]} {refused.value.hint}" == in_python.value.message
    await grant_priority(on, "acme", 2)
    assert (await call(on, "work", "acme", priority=2)).created


async def test_an_unknown_kind_is_refused_with_those_there_are(on: Connection) -> None:
    with pytest.raises(asyncpg.UndefinedObjectError, match=r"There is no kind 'wrok'\.") as refused:
        await call(on, "wrok", "acme")
    assert refused.value.hint == "A worker makes its kinds known when it starts. Known kinds: slow, work."


async def test_a_kind_that_only_an_older_worker_has_served_is_refused_with_what_to_do(on: Connection) -> None:
    await on.execute("INSERT INTO kinds (name, dependency) VALUES ('old', 'gateway')")  # as release 0.1.0 does
    with pytest.raises(asyncpg.UndefinedObjectError, match="limits of kind 'old' are not known") as refused:
        await call(on, "old", "acme")
    assert "Start a worker of this release" in str(refused.value.hint)


async def test_whoever_brings_the_limits_along_needs_no_worker_first(on: Connection) -> None:
    limits = {"queue": "default", "max_attempts": 4, "max_crashes": 2, "time_limit": 30}
    job = await row(on, (await call(on, "fresh", "acme", **limits)).id)
    assert {name: job[name] for name in limits} == limits
    with pytest.raises(asyncpg.InvalidParameterValueError):
        await call(on, "No Name", "acme", **limits)


async def test_limits_of_a_job_may_differ_from_its_kinds(on: Connection) -> None:
    job = await row(on, (await call(on, "work", "acme", max_attempts=9)).id)
    assert (job["max_attempts"], job["max_crashes"]) == (9, WORK.max_crashes)


async def test_new_limits_count_for_new_jobs(on: Connection) -> None:
    await record_limits(on, [replace(WORK, time_limit=7.0)])
    assert (await row(on, (await call(on, "work", "acme")).id))["time_limit"] == 7.0
