"""Ended jobs leave the hot table, and nobody notices: what is asked of a shelved job is answered as before."""

from __future__ import annotations

import asyncio
import random
import re
import uuid
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from support.engine import (
    TTL,
    WORK,
    Connect,
    failure,
    one_job,
    running_job,
    some_jobs,
    start_worker,
    take,
    until_blocked,
)
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict, NotFound, Refused, WaybillError
from waybill.ids import first_id_at, new_id
from waybill_engine import (
    NewJob,
    State,
    Unique,
    UniqueScope,
    bulk,
    control,
    enqueue,
    queries,
    retention,
    shelf,
)
from waybill_engine.explain import explain
from waybill_engine.families import enqueue_family
from waybill_engine.finish import judge, settle, succeed
from waybill_engine.job_filter import Action, JobFilter
from waybill_engine.job_locks import lock_job, lock_jobs, share_job
from waybill_engine.models import FINAL
from waybill_engine.relay import switch_off, switch_on

EVERYTHING = uuid.UUID(int=2**128 - 1)


async def shelve_all(connection: Connection, seconds: float = 0.0) -> int:
    """Shelve whatever may be, until nothing more goes: parents go after their children."""
    total = 0
    while True:
        page = await shelf.page(connection, uuid.UUID(int=0), EVERYTHING, 10_000)
        shelved = await shelf.shelve(connection, page, seconds)
        total += shelved
        if not shelved:
            return total


async def on_shelf(connection: Connection) -> set[uuid.UUID]:
    return {row["id"] for row in await connection.fetch("SELECT id FROM shelved_jobs")}


async def in_hot_table(connection: Connection) -> set[uuid.UUID]:
    return {row["id"] for row in await connection.fetch("SELECT id FROM jobs")}


async def ended(connection: Connection, state: State = State.SUCCEEDED, **facts: Any) -> uuid.UUID:
    if state is State.CANCELLED:
        job_id = await one_job(connection, **facts)
        await control.cancel(connection, job_id)
        return job_id
    worker, claimed = await running_job(connection, **facts)
    if state is State.SUCCEEDED:
        await succeed(connection, worker.id, [(claimed.id, claimed.token)])
    else:
        verdict = judge(claimed, failure(retryable=False), WORK.retry)
        await settle(connection, worker.id, [(claimed.id, claimed.token, verdict)])
        if state is State.DEAD_LETTER:
            await connection.execute("UPDATE jobs SET state = 'dead_letter' WHERE id = $1", claimed.id)
    return claimed.id


async def test_only_jobs_that_nobody_works_with_are_shelved(hot: Connection) -> None:
    waiting, done, failed = await one_job(hot, delay=60), await ended(hot), await ended(hot, State.FAILED)
    cancelled, dead = await ended(hot, State.CANCELLED), await ended(hot, State.DEAD_LETTER)
    pinned = await ended(hot)
    await retention.pin(hot, pinned, pinned=True)
    forever = await ended(hot, unique=Unique("a", UniqueScope.FOREVER))
    within = await ended(hot, unique=Unique("b", UniqueScope.WINDOW, window=3600.0))
    strange = await ended(hot, id=uuid.uuid4())
    assert await shelve_all(hot, seconds=3600.0) == 0, "they have just ended"
    await shelve_all(hot)
    assert await on_shelf(hot) == {done, failed, cancelled}
    assert await in_hot_table(hot) == {waiting, dead, pinned, forever, within, strange}


async def test_a_job_and_its_history_come_back_as_they_went(db: Database, hot: Connection) -> None:
    job_id = await ended(hot, State.FAILED, payload={"n": 1})
    before = await hot.fetchrow("SELECT * FROM jobs")
    async with db.transaction() as session:
        told = await queries.history(session, await queries.get_job(session, job_id))
    await shelve_all(hot)
    assert await hot.fetchval("SELECT count(*) FROM job_events") == 0
    async with db.transaction() as session:
        assert await queries.history(session, await queries.get_job(session, job_id)) == told
    assert (await explain(hot, job_id)).facts["error_code"] == "PARSE_ERROR"
    async with hot.transaction():
        assert await lock_job(hot, job_id) is not None
    assert await hot.fetchrow("SELECT * FROM jobs") == before
    async with db.transaction() as session:
        assert await queries.history(session, await queries.get_job(session, job_id)) == told


async def test_a_shelved_job_runs_again_exactly_once(hot: Connection, connect: Connect) -> None:
    job_id = await ended(hot, State.FAILED)
    await shelve_all(hot)

    async def retry() -> State | None:
        connection = await connect()
        try:
            return await control.retry(connection, job_id)
        except Conflict:
            return None

    answers = await asyncio.gather(*(retry() for _ in range(5)))
    assert sorted(answers, key=str) == [None, None, None, None, State.QUEUED]
    assert (await on_shelf(hot), await in_hot_table(hot)) == (set(), {job_id})
    [claimed] = await take(hot, await start_worker(hot))
    assert claimed.token == 2, "the token goes on growing, so the first run's worker is fenced off"


async def test_whoever_asks_while_a_job_is_being_shelved_finds_it(hot: Connection, connect: Connect) -> None:
    job_id = await ended(hot, State.FAILED)
    shelving, asking = await connect(), await connect()
    async with shelving.transaction():
        assert await shelf.shelve(shelving, [job_id], 0) == 1
        retrying = asyncio.create_task(control.retry(asking, job_id))
        await until_blocked(hot, asking)
    assert await retrying is State.QUEUED


async def test_the_shelf_does_not_wait_for_the_relay_nor_the_relay_for_it(hot: Connection, connect: Connect) -> None:
    job_id = await ended(hot, State.FAILED)
    relaying, other = await connect(), await connect()
    assert await switch_on(relaying)
    async with asyncio.timeout(10):
        assert await shelf.shelve(hot, [job_id], 0) == 1
        assert await control.retry(hot, job_id) is State.QUEUED
    assert await switch_off(relaying)
    async with hot.transaction():
        await shelf.unshelve(hot, [job_id])
        assert await switch_on(other)


async def test_a_job_that_somebody_has_locked_is_left_alone(hot: Connection, connect: Connect) -> None:
    job_id = await ended(hot)
    other = await connect()
    async with other.transaction():
        await share_job(other, job_id)
        assert await shelve_all(hot) == 0
    assert await shelve_all(hot) == 1


async def test_children_of_a_parent_that_may_be_retried_just_now_stay(hot: Connection, connect: Connect) -> None:
    family = await enqueue_family(hot, NewJob(WORK, "acme"), [NewJob(WORK, "acme")])
    for _ in range(2):
        worker = await start_worker(hot)
        [claimed] = await take(hot, worker)
        await settle(
            hot, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(retryable=False), WORK.retry))]
        )
    other = await connect()
    async with other.transaction():
        # As a process of release 0.1.0 does: it knows nothing of the shelf.
        await other.execute("UPDATE jobs SET state = 'queued', finished_at = NULL WHERE id = $1", family.parent.id)
        assert await shelf.shelve(hot, [family.children[0].id], 0) == 0
    assert await shelve_all(hot) == 0, "the parent is active"


async def test_a_retried_parent_has_all_below_it_in_the_hot_table(hot: Connection) -> None:
    inner = await enqueue_family(hot, NewJob(WORK, "acme"), [NewJob(WORK, "acme"), NewJob(WORK, "acme")])
    await hot.execute("UPDATE jobs SET state = 'failed', finished_at = now(), run_at = now(), pending_children = 0")
    parent, children = inner.parent.id, {one.id for one in inner.children}
    await shelve_all(hot)
    assert await on_shelf(hot) == {parent, *children}
    first = min(children)
    assert await control.retry(hot, first) is State.QUEUED, "its parent has ended, and waits for nobody"
    assert await in_hot_table(hot) == {first}
    assert await control.retry(hot, parent) is State.SCHEDULED, "it waits for the child that is active"
    assert await in_hot_table(hot) == {parent, *children}
    assert await shelve_all(hot) == 0, "nothing below an active job is shelved"
    await control.cancel(hot, parent)
    assert await shelve_all(hot) == 3


async def test_an_id_that_is_on_the_shelf_is_taken(hot: Connection) -> None:
    long_ago = first_id_at(await hot.fetchval("SELECT now() - interval '2 days'"))
    job_id = await ended(hot, id=long_ago)
    await shelve_all(hot)
    with pytest.raises(Refused, match=str(job_id)):
        await enqueue(hot, NewJob(WORK, "acme", id=job_id))


async def test_a_key_whose_window_has_passed_is_free(hot: Connection) -> None:
    key = Unique("k", UniqueScope.WINDOW, window=0.000001)
    first = await ended(hot, unique=key)
    await shelve_all(hot)
    assert await on_shelf(hot) == {first}
    second = await ended(hot, State.FAILED, unique=Unique("k", UniqueScope.WINDOW, window=3600.0))
    with pytest.raises(Conflict):
        await control.retry(hot, first)
    async with hot.transaction():
        assert await lock_jobs(hot, [first, second]) == [first, second], "no two of them want the key"


async def test_nothing_is_shelved_while_a_worker_knows_only_the_hot_table(hot: Connection) -> None:
    worker = await start_worker(hot)
    assert await shelf.may_shelve(hot)
    await hot.execute("UPDATE workers SET version = '0.1.0' WHERE id = $1", worker.id)
    assert not await shelf.may_shelve(hot)


async def test_shelved_jobs_are_deleted_and_retried_by_filter(hot: Connection) -> None:
    failed, gone = await ended(hot, State.FAILED), await ended(hot)
    await shelve_all(hot)
    lend = _lend(hot)
    steps = [step async for step in bulk.delete(lend, JobFilter([State.SUCCEEDED], older_than=timedelta(0)))]
    assert [one for step in steps for one in step.done] == [gone]
    steps = [step async for step in bulk.retry(lend, JobFilter())]
    assert [one for step in steps for one in step.done] == [failed]
    assert await in_hot_table(hot) == {failed}


def _lend(connection: Connection) -> Any:
    @asynccontextmanager
    async def lend() -> Any:
        yield connection

    return lend


# The same game twice, once with everything shelved after each move: every answer must be the same.

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
TENANTS = ("acme", "globex")
CLEAR = "TRUNCATE jobs, job_events, shelved_jobs, shelved_job_events, workers, missed_turns"


class Game:
    """Moves chosen by a seed, and what was answered. Jobs are called by their number."""

    def __init__(self, db: Database, hot: Connection, seed: int, *, shelving: bool) -> None:
        self.db, self.hot, self.shelving = db, hot, shelving
        self.chance = random.Random(seed)
        self.jobs: list[uuid.UUID] = []
        self.answers: list[Any] = []
        self.shelved = 0

    async def play(self, moves: int) -> list[Any]:
        choices: list[Callable[[], Awaitable[Any]]] = [
            *(self.add, self.add, self.add_unique, self.add_family, *[self.run] * 6),
            *(self.retry, self.retry, self.cancel, self.delete, self.pin, self.lock, self.look, self.look),
            *(self.list, self.list, self.retry_many, self.delete_many),
        ]
        for _ in range(moves):
            move = self.chance.choice(choices)
            try:
                answer = await move()
            except WaybillError as error:
                answer = (type(error).__name__, _ID.sub(lambda found: self.name(uuid.UUID(found[0])), error.message))
            self.answers.append((move.__name__, answer))
            if self.shelving:
                self.shelved += await shelve_all(self.hot)
        self.answers.append([await self.seen(job_id) for job_id in self.jobs])
        return self.answers

    def name(self, job_id: uuid.UUID) -> str:
        return f"job {self.jobs.index(job_id)}" if job_id in self.jobs else "a stranger"

    def any_job(self) -> uuid.UUID:
        return self.chance.choice(self.jobs) if self.jobs else new_id()

    async def add(self) -> int:
        self.jobs += await some_jobs(self.hot, 2, tenant=self.chance.choice(TENANTS))
        return len(self.jobs)

    async def add_unique(self) -> Any:
        scope = self.chance.choice(list(UniqueScope))
        window = self.chance.choice([0.000001, 3600.0]) if scope is UniqueScope.WINDOW else None
        new = NewJob(WORK, "acme", unique=Unique(self.chance.choice("ab"), scope, window))
        answer = await enqueue(self.hot, new)
        if answer.created:
            self.jobs.append(answer.id)
        return self.name(answer.id), answer.created

    async def add_family(self) -> int:
        parent, children = NewJob(WORK, "acme"), [NewJob(WORK, "acme") for _ in range(2)]
        self.jobs += [parent.id, *(child.id for child in children)]
        await enqueue_family(self.hot, parent, children)
        return len(self.jobs)

    async def run(self) -> list[Any]:
        """Everything that waits runs, and ends somehow."""
        worker = await start_worker(self.hot, ttl=TTL)
        claimed = {one.id: one for one in await take(self.hot, worker)}
        ends = []
        for job_id in sorted(claimed, key=self.jobs.index):
            one, end = claimed[job_id], self.chance.choice(["succeeded", "succeeded", "failed", "dead_letter"])
            ends.append((self.name(job_id), end))
            if end == "succeeded":
                await succeed(self.hot, worker.id, [(one.id, one.token)])
                continue
            await settle(self.hot, worker.id, [(one.id, one.token, judge(one, failure(retryable=False), WORK.retry))])
            if end == "dead_letter":
                await self.hot.execute("UPDATE jobs SET state = 'dead_letter' WHERE id = $1", one.id)
        return ends

    async def retry(self) -> State:
        return await control.retry(self.hot, self.any_job())

    async def cancel(self) -> Any:
        result = await control.cancel(self.hot, self.any_job())
        return result.state, result.below

    async def delete(self) -> State:
        return await control.delete(self.hot, self.any_job())

    async def pin(self) -> Any:
        async with self.hot.transaction():
            job_id, pinned = self.any_job(), self.chance.random() < 0.5
            return await control.lock(self.hot, job_id), await retention.pin(self.hot, job_id, pinned=pinned)

    async def lock(self) -> Any:
        wanted = sorted({self.any_job() for _ in range(3)})
        async with self.hot.transaction():
            return sorted(self.name(one) for one in await lock_jobs(self.hot, wanted))

    async def look(self) -> Any:
        return await self.seen(self.any_job())

    async def seen(self, job_id: uuid.UUID) -> Any:
        async with self.db.transaction() as session:
            try:
                job = await queries.get_job(session, job_id)
            except NotFound:
                return None
            happened = [(one.event, one.detail) for one in await queries.history(session, job)]
            children = await queries.count_children(session, job_id)
        reason = (await explain(self.hot, job_id)).reason
        return self.name(job.id), job.state, job.attempts, job.lease_token, reason, children, happened

    async def list(self) -> Any:
        wanted: dict[str, Any] = {"limit": self.chance.choice([3, 50])}
        if self.chance.random() < 0.5:
            wanted["states"] = self.chance.sample(list(State), self.chance.choice([1, 3]))
        if self.chance.random() < 0.5:
            wanted["tenant"] = self.chance.choice(TENANTS)
        if self.chance.random() < 0.3:
            wanted["parent_id"] = self.any_job()
        if self.chance.random() < 0.3:
            wanted["before"] = self.any_job()
        async with self.db.transaction() as session:
            listed = [self.name(job.id) for job in await queries.list_jobs(session, **wanted)]
            counted = [(one.queue, sorted(one.counts.items())) for one in await queries.queue_stats(session)]
        return listed, counted

    async def retry_many(self) -> Any:
        wanted = JobFilter([self.chance.choice([State.FAILED, State.CANCELLED])], tenant=self.chance.choice(TENANTS))
        done = [one async for step in _steps(bulk.retry(_lend(self.hot), wanted)) for one in step]
        return sorted(map(self.name, done))

    async def delete_many(self) -> Any:
        wanted = JobFilter([self.chance.choice(list(FINAL))], tenant=self.chance.choice(TENANTS))
        if self.chance.random() < 0.7:  # else little is left to play with
            return await bulk.count(_lend(self.hot), Action.DELETE, wanted)
        done = [one async for step in _steps(bulk.delete(_lend(self.hot), wanted)) for one in step]
        return sorted(map(self.name, done))


async def _steps(steps: Any) -> Any:
    async for step in steps:
        yield step.done


@pytest.mark.parametrize("seed", range(4))
async def test_nobody_can_tell_whether_ended_jobs_were_shelved(db: Database, hot: Connection, seed: int) -> None:
    still = Game(db, hot, seed, shelving=False)
    expected = await still.play(70)
    await hot.execute(CLEAR)
    moving = Game(db, hot, seed, shelving=True)
    assert await moving.play(70) == expected
    assert moving.shelved > 10
