"""Everything at once, at random, for a while: no deadlock, nothing lost, nothing done twice."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from datetime import timedelta

import asyncpg
import pytest

from support.engine import (
    NO_SETTLE,
    OTHER,
    WORK,
    Connect,
    failure,
    find_contradictions,
    purge,
    start_worker,
    stored,
    take,
    take_isolated,
)
from support.patience import PATIENCE, until
from waybill.db.database import Connection
from waybill.db.session_settings import ONE_PLAN
from waybill.errors import Conflict, LeaseLost, NotFound
from waybill_engine import (
    ClaimedJob,
    Enqueued,
    NewJob,
    State,
    Unique,
    UniqueScope,
    add_children,
    bulk,
    enqueue_family,
)
from waybill_engine.artefacts import publish
from waybill_engine.control import cancel, pause, resume, retry
from waybill_engine.enqueue import enqueue_many
from waybill_engine.finish import judge, released, settle, succeed, succeeded_by
from waybill_engine.job_filter import JobFilter
from waybill_engine.lease import Progress, WorkerInfo, renew, write_progress
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import rescue, rescue_worker
from waybill_engine.retry import RetryPolicy

SHORT = 0.3
"""Seconds a worker's lease lasts here, so that many run out."""
QUEUES = ["default", "night"]
NOW = RetryPolicy(retries=2, base=0.0, jitter=0.0)


class Chaos:
    """A fleet of careless workers and impatient operators."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.enqueued: set[uuid.UUID] = set()
        self.purged = 0
        self.parents: list[uuid.UUID] = []
        """The latest; most of them wait."""
        self.succeeded: Counter[uuid.UUID] = Counter()
        self.done: Counter[str] = Counter()
        self.over = asyncio.Event()

    async def enqueuer(self, connection: Connection) -> None:
        while not self.over.is_set():
            jobs = []
            for _ in range(self.rng.randrange(1, 40)):
                key = f"k{self.rng.randrange(60)}"
                scope = self.rng.choice([None, None, UniqueScope.ACTIVE, UniqueScope.FOREVER, UniqueScope.WINDOW])
                window = 0.2 if scope is UniqueScope.WINDOW else None
                jobs.append(
                    NewJob(
                        self.rng.choice([WORK, OTHER]),
                        self.rng.choice(["acme", "zeta"]),
                        queue=self.rng.choice(QUEUES),
                        priority=self.rng.randrange(-4, 1),
                        delay=self.rng.choice([0.0, 0.0, 0.05]),
                        unique=Unique(key, scope, window) if scope else None,
                    )
                )
            transaction = connection.transaction()
            await transaction.start()
            answers = await self.enqueue_somehow(connection, jobs)
            if self.rng.random() < 0.2:
                await transaction.rollback()
            else:
                await transaction.commit()
                self.enqueued |= {one.id for one in answers if one.created}
            self.done["enqueue"] += 1

    async def enqueue_somehow(self, connection: Connection, jobs: list[NewJob]) -> list[Enqueued]:
        """Plain jobs, a family, a family within one, or more children for one that waits, if it still does."""
        way = self.rng.randrange(5)
        if way <= 1:
            return await enqueue_many(connection, jobs)
        # Keys in one call only: a caller who takes some in one order and some in another can meet one who does not.
        outer = await enqueue_family(connection, NewJob(OTHER, "acme", queue=self.rng.choice(QUEUES)), jobs)
        answers = [outer.parent, *outer.children]
        if way > 2:
            within = self.rng.choice([*self.parents, outer.parent.id])
            try:
                plain = [NewJob(WORK, "acme", queue=self.rng.choice(QUEUES)) for _ in range(6)]
                inner = await enqueue_family(connection, NewJob(OTHER, "acme"), plain[:3], within=within)
                answers += [inner.parent, *inner.children]
                answers += await add_children(connection, self.rng.choice([within, inner.parent.id]), plain[3:])
                self.done["joined"] += 1
            except (Conflict, NotFound):
                pass
        self.parents = [*self.parents[-20:], outer.parent.id]
        return answers

    async def worker(self, connection: Connection, heart: Connection) -> None:
        while not self.over.is_set():
            me = await start_worker(connection, queues=QUEUES, ttl=SHORT)
            mine: list[ClaimedJob] = []
            for _ in range(self.rng.randrange(3, 30)):
                await self.one_step(connection, heart, me, mine)
            if self.rng.random() < 0.5:
                await rescue_worker(connection, me.id)
            # Else it is simply silent from here on.

    async def one_step(self, connection: Connection, heart: Connection, me: WorkerInfo, mine: list[ClaimedJob]) -> None:
        beat = renew(heart, me.id, SHORT)
        if self.rng.random() < 0.8:
            claimed_jobs, _ = await asyncio.gather(take(connection, me, self.rng.randrange(1, 12)), beat)
        else:
            claimed_jobs, _ = await asyncio.gather(take_isolated(connection, me), beat)
        mine += claimed_jobs
        self.done["claim"] += len(claimed_jobs)
        self.rng.shuffle(mine)
        some = [mine.pop() for _ in range(self.rng.randrange(len(mine) + 1))]
        way = self.rng.randrange(6)
        if way <= 1:
            done = await succeed(connection, me.id, [(claimed.id, claimed.token) for claimed in some])
            self.succeeded.update(done)
            self.done["succeed"] += len(done)
        elif way == 2:
            await settle(
                connection,
                me.id,
                [
                    (
                        claimed.id,
                        claimed.token,
                        judge(claimed, failure(retryable=self.rng.random() < 0.8), NOW, self.rng),
                    )
                    for claimed in some
                ],
            )
        elif way == 3:
            await settle(connection, me.id, [(claimed.id, claimed.token, released("bye")) for claimed in some])
        elif way == 4:
            await write_progress(
                connection,
                [Progress(claimed.id, claimed.token, claimed.worker_id, self.rng.random(), "…") for claimed in some],
            )
            mine += some
        else:
            async with connection.transaction():
                assert not await succeeded_by(connection, me.id, [(claimed.id, claimed.token) for claimed in some])
            for claimed in some:
                await self.in_a_transaction(connection, me, claimed)

    async def in_a_transaction(self, connection: Connection, me: WorkerInfo, claimed: ClaimedJob) -> None:
        try:
            async with connection.transaction():
                await publish(
                    connection, claimed.worker_id, claimed.id, claimed.token, "out", stored("k"), "text/plain"
                )
                following = await enqueue_many(connection, [NewJob(OTHER, "acme")])
                assert await succeed(connection, me.id, [(claimed.id, claimed.token)]) == {claimed.id}
        except LeaseLost:
            return
        self.enqueued |= {one.id for one in following}
        self.succeeded[claimed.id] += 1
        self.done["transaction"] += 1

    async def operator(self, connection: Connection) -> None:
        while not self.over.is_set():
            await promote_due(connection, 50)
            if self.enqueued:
                job_id = self.rng.choice([self.rng.choice(tuple(self.enqueued)), *self.parents[-1:]])
                for act in (cancel, retry):
                    try:
                        await act(connection, job_id)
                        self.done[act.__name__] += 1
                    except (Conflict, NotFound):
                        pass
            chance = self.rng.random()
            if chance < 0.05:
                await pause(connection, self.rng.choice(QUEUES))
            elif chance < 0.3:
                await resume(connection, self.rng.choice(QUEUES))
            elif chance < 0.35:
                await self.in_bulk(bulk.retry, connection)
            elif chance < 0.37:
                await self.in_bulk(bulk.cancel, connection)
            elif chance < 0.4:
                # Not `+= await`: that adds to what was there before the wait.
                deleted = await purge(
                    connection, older_than=timedelta(seconds=0.5), states=[State.CANCELLED, State.FAILED], batch=20
                )
                self.purged += deleted

    async def in_bulk(self, act: Callable[..., AsyncIterator[bulk.Step]], connection: Connection) -> None:
        wanted = JobFilter(kind=self.rng.choice(("work", "other")))
        async for step in act(lambda: nullcontext(connection), wanted, batch=20):
            self.done[f"bulk {act.__name__}"] += len(step.done)

    async def rescuer(self, connection: Connection) -> None:
        while not self.over.is_set():
            rescued = await rescue(connection, settle_time=NO_SETTLE)
            self.done["rescue"] += len(rescued)


WORTH_IT = ("enqueue", "claim", "succeed", "transaction", "cancel", "retry", "rescue", "joined")
"""A chaos in which one of these never happens is too calm to prove anything."""


async def run_chaos(connect: Connect, seconds: float, seed: int) -> None:
    async def hot() -> Connection:
        """As the engine's own are: on these, rows are locked in the order of their ids."""
        connection = await connect()
        for name, value in ONE_PLAN.items():
            await connection.execute(f"SET {name} = {value}")
        return connection

    chaos = Chaos(seed)
    look = await connect()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(chaos.worker(await hot(), await hot()))
        for _ in range(2):
            tasks.create_task(chaos.enqueuer(await connect()))
            tasks.create_task(chaos.operator(await hot()))
            tasks.create_task(chaos.rescuer(await hot()))
        await asyncio.sleep(seconds)  # the chaos is what is waited for
        await until(lambda: all(chaos.done[what] for what in WORTH_IT), within=PATIENCE)
        chaos.over.set()

    # Nothing lost: every committed job is there or was purged after it had ended.
    left = {row["id"] for row in await look.fetch("SELECT id FROM jobs")}
    assert left <= chaos.enqueued
    assert len(chaos.enqueued - left) == chaos.purged
    # Nothing twice: what a worker was told it completed is completed, once.
    assert max(chaos.succeeded.values(), default=0) <= 1
    final = {row["id"] for row in await look.fetch("SELECT id FROM jobs WHERE state = 'succeeded'")}
    assert final == set(chaos.succeeded)
    assert await find_contradictions(look) == []

    # Nothing stuck: an orderly fleet brings the rest to its end.
    for queue in QUEUES:
        await resume(look, queue)
    await look.execute("UPDATE workers SET lease_expires_at = now() - interval '1 second' WHERE state = 'active'")
    while await rescue(look, settle_time=NO_SETTLE):
        pass
    calm = await start_worker(look, queues=QUEUES, ttl=600)
    for _ in range(100_000):
        promoted = await promote_due(look)
        claimed_jobs = await take(look, calm, 1000) or await take_isolated(look, calm)
        await succeed(look, calm.id, [(claimed.id, claimed.token) for claimed in claimed_jobs])
        if not claimed_jobs and not promoted.count and promoted.next_in is None:
            break
    unfinished = await look.fetch("SELECT state, count(*) FROM jobs WHERE finished_at IS NULL GROUP BY state")
    assert unfinished == []
    assert await find_contradictions(look) == []


async def test_everything_at_once(connect: Connect) -> None:
    await run_chaos(connect, 3.0, seed=random.randrange(1_000_000))


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
async def test_everything_at_once_for_long(connect: Connect, seed: int) -> None:
    await run_chaos(connect, 60.0, seed=seed)


async def test_a_deadlock_would_be_seen(connect: Connect) -> None:
    """The tests above rely on Postgres reporting one as an error; so it does."""
    one, other = await connect(), await connect()
    worker = await start_worker(one)
    first, second = [answer.id for answer in await enqueue_many(one, [NewJob(WORK, "acme") for _ in range(2)])]
    assert len(await take(one, worker)) == 2

    async def lock_both(connection: Connection, order: list[uuid.UUID], met: asyncio.Barrier) -> None:
        async with connection.transaction():
            await succeeded_by(connection, worker.id, [(order[0], 1)])
            await met.wait()
            await succeeded_by(connection, worker.id, [(order[1], 1)])

    met = asyncio.Barrier(2)
    results = await asyncio.gather(
        lock_both(one, [first, second], met), lock_both(other, [second, first], met), return_exceptions=True
    )
    assert sum(isinstance(result, asyncpg.DeadlockDetectedError) for result in results) == 1
