"""Many jobs are cancelled, retried or deleted at once: exactly those that match, in short steps, families included."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from typing import Any

import pytest

from support.clock import Clock
from support.engine import (
    OTHER,
    WORK,
    Connect,
    count,
    events,
    failure,
    find_contradictions,
    one_job,
    purge,
    row,
    running_job,
    some_jobs,
    start_worker,
    state,
    states,
    stored,
    take,
)
from support.pgbouncer import installed, pgbouncer
from waybill.config import CommonSettings
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Refused
from waybill.retention import hold
from waybill_engine import JobKind, NewJob, State, Unique, UniqueScope, bulk, enqueue, enqueue_family
from waybill_engine.artefacts import publish
from waybill_engine.bulk import Step
from waybill_engine.control import cancel, retry
from waybill_engine.finish import judge, settle, succeed
from waybill_engine.job_filter import Action, JobFilter
from waybill_engine.lease import holdings
from waybill_engine.models import FINAL
from waybill_engine.retention import pin

ALL_FINAL = tuple(FINAL)
DEAD = JobFilter([State.DEAD_LETTER])


async def failed_job(connection: Connection, kind: JobKind = WORK, **facts: Any) -> uuid.UUID:
    worker, claimed = await running_job(connection, kind, **facts)
    await settle(
        connection, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(retryable=False), kind.retry))]
    )
    return claimed.id


async def dead_job(connection: Connection, *, key: str | None = None, **facts: Any) -> uuid.UUID:
    job_id = await failed_job(connection, unique=Unique(key) if key else None, **facts)
    await connection.execute("UPDATE jobs SET state = 'dead_letter', attempts = max_attempts WHERE id = $1", job_id)
    return job_id


async def steps_of(steps: AsyncIterator[Step]) -> list[Step]:
    return [step async for step in steps]


async def done_by(steps: AsyncIterator[Step]) -> list[uuid.UUID]:
    """The jobs that were changed, when none was left."""
    all_steps = await steps_of(steps)
    assert [step.left for step in all_steps if step.left] == []
    return [job_id for step in all_steps for job_id in step.done]


# Choosing


@pytest.fixture
async def mixed(hot: Connection, clock: Clock) -> dict[str, uuid.UUID]:
    """One job of each sort, the first of them an hour old."""
    jobs = {"old": await one_job(hot)}
    await clock.forward(3600)
    return jobs | {
        "plain": await one_job(hot),
        "scheduled": await one_job(hot, delay=60.0),
        "other kind": await one_job(hot, OTHER),
        "other tenant": await one_job(hot, tenant="globex"),
        "other queue": await one_job(hot, queue="night"),
        "with key": await one_job(hot, unique=Unique("month-7")),
    }


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (JobFilter(kind="other"), {"other kind"}),
        (JobFilter(tenant="globex"), {"other tenant"}),
        (JobFilter(queue="night"), {"other queue"}),
        (JobFilter([State.SCHEDULED]), {"scheduled"}),
        (JobFilter(unique_key="month-7"), {"with key"}),
        (JobFilter(older_than=timedelta(minutes=30)), {"old"}),
        (JobFilter([State.QUEUED], "work", "acme", "default"), {"old", "plain", "with key"}),
        (JobFilter(kind="work", tenant="nobody"), set()),
        (JobFilter(error_code="GW_5XX"), set()),
    ],
)
async def test_exactly_the_jobs_that_match_are_counted_and_cancelled(
    db: Database, hot: Connection, mixed: dict[str, uuid.UUID], wanted: JobFilter, found: set[str]
) -> None:
    assert await bulk.count(db.hot, Action.CANCEL, wanted) == len(found)
    assert await count(hot, "state = 'cancelled'") == 0, "counting changes nothing"
    assert set(await done_by(bulk.cancel(db.hot, wanted, reason="too many"))) == {mixed[name] for name in found}
    cancelled = {one["id"] for one in await hot.fetch("SELECT id FROM jobs WHERE error_message = 'too many'")}
    assert cancelled == {mixed[name] for name in found}
    assert await bulk.count(db.hot, Action.CANCEL, wanted) == 0


async def test_jobs_are_chosen_by_the_code_of_their_last_error(db: Database, hot: Connection) -> None:
    broken, slow = await failed_job(hot), await failed_job(hot)
    await hot.execute("UPDATE jobs SET error_code = 'TIMEOUT' WHERE id = $1", slow)
    assert await done_by(bulk.retry(db.hot, JobFilter(error_code="TIMEOUT"))) == [slow]
    assert await done_by(bulk.delete(db.hot, JobFilter(error_code="PARSE_ERROR"))) == [broken]


@pytest.mark.parametrize(
    ("action", "wrong"),
    [(Action.CANCEL, State.FAILED), (Action.RETRY, State.SUCCEEDED), (Action.RETRY, State.RUNNING)]
    + [(Action.DELETE, one) for one in State if one not in FINAL],
)
async def test_a_state_that_the_action_cannot_be_applied_to_is_refused(
    db: Database, action: Action, wrong: State
) -> None:
    with pytest.raises(Refused, match=f"{wrong} cannot be chosen to {action}. Choose from: "):
        await bulk.count(db.hot, action, JobFilter([wrong]))


async def test_jobs_that_come_while_it_goes_on_are_left_alone(db: Database, hot: Connection) -> None:
    """Or it would never end where jobs come faster than it goes."""
    dead = [await dead_job(hot) for _ in range(3)]
    came: list[uuid.UUID] = []
    done: list[uuid.UUID] = []
    async for step in bulk.retry(db.hot, JobFilter(), batch=1):
        done += step.done
        came.append(await one_job(hot))
        await cancel(hot, came[-1])
    assert done == dead
    assert await states(hot, came) == [State.CANCELLED] * 3


# In steps


async def test_a_step_changes_few_jobs_and_has_committed_when_the_next_begins(db: Database, connect: Connect) -> None:
    look = await connect()
    jobs = await some_jobs(look, 25)
    steps = bulk.cancel(db.hot, JobFilter(kind="work"), batch=10)
    seen = [(len(step.done), await count(look, "state = 'cancelled'")) async for step in steps]
    assert seen == [(10, 10), (10, 20), (5, 25)]
    assert len(jobs) == 25


async def test_one_that_was_stopped_goes_on_where_it_was(db: Database, hot: Connection) -> None:
    dead = [await dead_job(hot) for _ in range(5)]
    step = await anext(bulk.retry(db.hot, DEAD, batch=2))
    assert step.after == dead[1]
    rest = bulk.retry(db.hot, DEAD, batch=2, after=step.after)
    assert await done_by(rest) == dead[2:]
    assert Counter(await states(hot, dead)) == {State.QUEUED: 5}


async def test_pages_without_a_match_are_passed_over(
    db: Database, hot: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_engine.job_filter._EXAMINED", 4)
    jobs = await some_jobs(hot, 30)
    for job_id in (jobs[0], jobs[17], jobs[29]):
        await cancel(hot, job_id)
    assert await done_by(bulk.delete(db.hot, JobFilter())) == [jobs[0], jobs[17], jobs[29]]
    assert len(await done_by(bulk.cancel(db.hot, JobFilter()))) == 27


class Pooled:
    """Lends connections as behind a transaction pooler, where a whole block is one transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.blocks = 0

    @asynccontextmanager
    async def hot(self) -> AsyncIterator[Connection]:
        self.blocks += 1
        async with self._db.hot() as connection, connection.transaction():
            yield connection


async def test_each_step_is_a_transaction_of_its_own_where_a_block_is_one(db: Database, connect: Connect) -> None:
    look = await connect()
    dead = [await dead_job(look, key="k1" if number == 3 else None) for number in range(7)]
    await one_job(look, unique=Unique("k1"))
    pooled = Pooled(db)
    steps = bulk.retry(pooled.hot, DEAD, batch=2)
    seen = [(len(step.done), step.left, await count(look, "state = 'dead_letter'")) async for step in steps]
    assert seen == [(2, [], 5), (1, [dead[3]], 4), (2, [], 2), (1, [], 1)]
    deleted = 0
    async for step in bulk.delete(pooled.hot, DEAD, batch=1):
        deleted += len(step.done)
        assert await count(look, "state = 'dead_letter'") == 1 - deleted
    assert deleted == 1
    assert pooled.blocks > 8


@pytest.mark.skipif(not installed(), reason="pgbouncer is not installed (Debian's package pgbouncer)")
async def test_it_works_behind_a_real_pooler(database_url: str, hot: Connection) -> None:
    dead = [await dead_job(hot, key=f"k{number}") for number in range(3)]
    await enqueue(hot, NewJob(WORK, "acme", unique=Unique("k0")))
    waiting = await some_jobs(hot, 5, OTHER)
    with pgbouncer(database_url) as url:
        settings = CommonSettings.model_validate({"database_url": url, "database_pgbouncer": True})
        pooled = await Database.connect(settings)
        (step,) = await steps_of(bulk.retry(pooled.hot, DEAD))
        assert (step.done, step.left) == (dead[1:], dead[:1])
        assert await done_by(bulk.cancel(pooled.hot, JobFilter(kind="other"), batch=2)) == waiting
        assert await done_by(bulk.delete(pooled.hot, JobFilter(kind="other"), batch=2)) == waiting
        await pooled.close()


async def test_a_locked_job_keeps_nobody_else_waiting_and_is_not_forgotten(db: Database, connect: Connect) -> None:
    mine, other = await connect(), await connect()
    jobs = await some_jobs(mine, 4)
    steps: list[Step] = []

    async def go() -> None:
        steps.extend(await steps_of(bulk.cancel(db.hot, JobFilter())))

    async with other.transaction():
        await other.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", jobs[1])
        going = asyncio.create_task(go())
        async with asyncio.timeout(30):
            while await count(mine, "state = 'cancelled'") < 3:
                await asyncio.sleep(0)
        assert not going.done()
    await going
    assert sorted(steps[0].done) == jobs
    assert await states(mine, jobs) == [State.CANCELLED] * 4


async def test_a_job_that_changed_while_it_was_waited_for_is_judged_anew(db: Database, connect: Connect) -> None:
    """Only queued jobs were meant, and this one has started."""
    mine, other = await connect(), await connect()
    job_id = await one_job(mine)
    worker = await start_worker(other)
    async with other.transaction():
        assert [claimed.id for claimed in await take(other, worker)] == [job_id]
        going = asyncio.create_task(steps_of(bulk.cancel(db.hot, JobFilter([State.QUEUED]))))
        async with asyncio.timeout(30):
            while not await mine.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                await asyncio.sleep(0)
    (step,) = await going
    assert (step.done, step.stopping, step.left) == ([], [], [])
    assert (await row(mine, job_id))["cancel_requested_at"] is None


# Cancel


async def test_running_jobs_are_asked_to_stop_once(db: Database, connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await listener.add_listener("waybill_control", lambda *told: heard.put_nowait(str(told[3])))
    worker, claimed = await running_job(mine)
    (step,) = await steps_of(bulk.cancel(db.hot, JobFilter(), reason="not needed"))
    assert (step.done, step.stopping) == ([], [claimed.id])
    assert await asyncio.wait_for(heard.get(), 10) == str(worker.id)
    assert (await holdings(mine, worker.id)).stop == {claimed.id}
    assert await steps_of(bulk.cancel(db.hot, JobFilter())) == [], "it was asked already"
    assert await events(mine, claimed.id) == ["cancel_requested"]


async def test_a_cancelled_parent_takes_its_family_along(db: Database, hot: Connection) -> None:
    family = await enqueue_family(hot, NewJob(OTHER, "acme"), [NewJob(WORK, "acme") for _ in range(3)])
    (running,) = await take(hot, await start_worker(hot), 1)
    (step,) = await steps_of(bulk.cancel(db.hot, JobFilter(tenant="acme"), batch=10))
    assert step.done == [*(child.id for child in family.children[1:]), family.parent.id]
    assert step.stopping == [running.id]
    assert await find_contradictions(hot) == []

    family = await enqueue_family(hot, NewJob(OTHER, "acme"), [NewJob(WORK, "acme") for _ in range(3)])
    (running,) = await take(hot, await start_worker(hot), 1)
    (step,) = await steps_of(bulk.cancel(db.hot, JobFilter(kind="other")))
    assert (step.done, step.stopping, step.below) == ([family.parent.id], [running.id], 2)
    assert await find_contradictions(hot) == []


async def test_cancelled_children_are_counted_at_their_parents(db: Database, hot: Connection) -> None:
    families = [
        await enqueue_family(hot, NewJob(OTHER, "acme"), [NewJob(WORK, tenant) for tenant in ("acme", "globex")])
        for _ in range(3)
    ]
    parents = [family.parent.id for family in families]
    assert len(await done_by(bulk.cancel(db.hot, JobFilter(kind="work", tenant="acme")))) == 3
    assert [(await row(hot, one))["pending_children"] for one in parents] == [1, 1, 1]
    assert len(await done_by(bulk.cancel(db.hot, JobFilter(kind="work", tenant="globex")))) == 3
    assert await states(hot, parents) == [State.QUEUED] * 3
    assert await find_contradictions(hot) == []


# Retry


async def test_all_dead_letters_are_retried_except_those_whose_key_is_taken(db: Database, hot: Connection) -> None:
    dead = [await dead_job(hot, key=f"k{number}" if number < 3 else None) for number in range(5)]
    await enqueue(hot, NewJob(WORK, "acme", unique=Unique("k1")))
    (step,) = await steps_of(bulk.retry(db.hot, DEAD))
    assert (step.done, step.left) == ([dead[0], *dead[2:]], [dead[1]])
    (step,) = await steps_of(bulk.retry(db.hot, DEAD))
    assert (step.done, step.left) == ([], [dead[1]])


async def test_jobs_retried_together_start_afresh_and_leave_their_history(db: Database, hot: Connection) -> None:
    dead = [await dead_job(hot) for _ in range(3)]
    assert await done_by(bulk.retry(db.hot, JobFilter(), reason="mended")) == dead
    for job_id in dead:
        job = await row(hot, job_id)
        assert (job["state"], job["attempts"], job["crashes"], job["finished_at"]) == ("queued", 0, 0, None)
        assert await events(hot, job_id) == ["failed", "retried"]
    claimed = await take(hot, await start_worker(hot))
    assert [(one.id, one.token) for one in claimed] == [(job_id, 2) for job_id in dead]


async def test_of_two_dead_letters_with_one_key_one_is_retried(db: Database, hot: Connection) -> None:
    dead = [await dead_job(hot, key="k") for _ in range(2)]
    (step,) = await steps_of(bulk.retry(db.hot, DEAD))
    assert (step.done, step.left) == (dead[:1], dead[1:])


async def test_retried_children_are_awaited_again_by_parents_that_still_wait(db: Database, hot: Connection) -> None:
    families = [
        await enqueue_family(hot, NewJob(OTHER, "acme"), [NewJob(WORK, "acme") for _ in range(3)]) for _ in range(2)
    ]
    children = [child.id for family in families for child in family.children]
    for child in (*children[:2], *children[3:]):  # of the second family all, so that its parent no longer waits
        await cancel(hot, child)
    assert len(await done_by(bulk.retry(db.hot, JobFilter(kind="work")))) == 5
    first, second = [await row(hot, family.parent.id) for family in families]
    assert (first["state"], first["pending_children"]) == ("scheduled", 3)
    assert (second["state"], second["pending_children"]) == ("queued", 0)
    assert await find_contradictions(hot) == []


async def test_a_retried_parent_waits_for_its_active_children_again(db: Database, hot: Connection) -> None:
    family = await enqueue_family(hot, NewJob(OTHER, "acme"), [NewJob(WORK, "acme") for _ in range(2)])
    await take(hot, await start_worker(hot), 1)  # it goes on running, although it is asked to stop
    await cancel(hot, family.parent.id)
    assert await done_by(bulk.retry(db.hot, JobFilter(kind="other"))) == [family.parent.id]
    assert (await row(hot, family.parent.id))["pending_children"] == 1
    assert await find_contradictions(hot) == []


# Delete


async def test_deleting_takes_old_ended_jobs_with_all_that_is_theirs_and_nothing_else(
    hot: Connection, clock: Clock
) -> None:
    worker, claimed = await running_job(hot)
    await publish(hot, claimed.worker_id, claimed.id, claimed.token, "out", stored("k"), "text/plain")
    await succeed(hot, worker.id, [(claimed.id, claimed.token)])
    still_running = (await running_job(hot))[1].id
    still_scheduled = await one_job(hot, delay=1e6)
    still_queued = await one_job(hot)
    await clock.forward(100)
    fresh = await one_job(hot)
    await cancel(hot, fresh)
    assert await purge(hot, older_than=timedelta(seconds=50), states=ALL_FINAL) == 1
    left = {one["id"] for one in await hot.fetch("SELECT id FROM jobs")}
    assert left == {still_running, still_scheduled, still_queued, fresh}
    assert await hot.fetchval("SELECT count(*) FROM job_artefacts") == 0
    assert await events(hot, claimed.id) == []
    assert await events(hot, fresh) == ["cancelled"]


async def test_deleting_goes_in_bites_and_takes_all(hot: Connection, clock: Clock) -> None:
    for job_id in await some_jobs(hot, 25):
        await cancel(hot, job_id)
    await clock.forward(10)
    assert await purge(hot, older_than=timedelta(seconds=5), states=[State.CANCELLED], batch=10) == 25
    assert await count(hot) == 0


async def test_deleting_takes_the_states_kind_and_tenant_it_was_told(hot: Connection, clock: Clock) -> None:
    failed, dead = await failed_job(hot), await dead_job(hot)
    await clock.forward(10)
    old = timedelta(seconds=5)
    assert await purge(hot, older_than=old, states=[State.CANCELLED]) == 0
    assert await purge(hot, older_than=old, states=ALL_FINAL, kind="nothing") == 0
    assert await purge(hot, older_than=old, states=ALL_FINAL, tenant="nobody") == 0
    assert await purge(hot, older_than=old, states=[State.DEAD_LETTER], kind="work", tenant="acme") == 1
    assert [one["id"] for one in await hot.fetch("SELECT id FROM jobs")] == [failed]
    assert dead != failed


async def test_a_job_that_is_being_retried_is_not_deleted(connect: Connect) -> None:
    retrying, deleting = await connect(), await connect()
    job_id = await dead_job(retrying)
    async with retrying.transaction():
        await retry(retrying, job_id)
        assert await done_by(bulk.delete(lambda: nullcontext(deleting), JobFilter())) == []
    assert await done_by(bulk.delete(lambda: nullcontext(deleting), JobFilter())) == []
    assert await state(retrying, job_id) is State.QUEUED


async def test_what_is_pinned_or_under_legal_hold_is_neither_counted_nor_deleted(db: Database, hot: Connection) -> None:
    pinned, held, free = [await dead_job(hot, tenant=tenant) for tenant in ("acme", "globex", "acme")]
    await pin(hot, pinned, pinned=True)
    await hold(hot, "globex")
    assert await bulk.count(db.hot, Action.DELETE, JobFilter()) == 1
    assert await done_by(bulk.delete(db.hot, JobFilter())) == [free]
    assert await states(hot, (pinned, held)) == [State.DEAD_LETTER] * 2


async def test_deleting_frees_a_key_kept_for_ever(db: Database, hot: Connection) -> None:
    job = await enqueue(hot, NewJob(WORK, "acme", unique=Unique("k", UniqueScope.FOREVER)))
    await cancel(hot, job.id)
    assert await done_by(bulk.delete(db.hot, JobFilter(unique_key="k"))) == [job.id]
    assert (await enqueue(hot, NewJob(WORK, "acme", unique=Unique("k", UniqueScope.FOREVER)))).created
