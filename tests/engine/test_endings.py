"""Pipelines hear how jobs end: exactly if the end commits, whoever ends them, and never at the job's expense."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from support.clock import Clock
from support.engine import (
    NO_SETTLE,
    TTL,
    WORK,
    events,
    failure,
    one_job,
    running_job,
    some_jobs,
    start_worker,
    state,
    take,
    take_isolated,
)
from waybill.changes.events import Event
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill_engine import JobKind, NewJob, State, bulk, endings, enqueue_family
from waybill_engine.control import cancel
from waybill_engine.finish import judge, released, settle, succeed
from waybill_engine.job_filter import JobFilter
from waybill_engine.rescue import rescue

TELLING = replace(WORK, tells_end=True)
QUIET = WORK

Told = Callable[[], Awaitable[list[tuple[str, str]]]]


async def write_it_down(connection: Connection, event: Event) -> None:
    await connection.execute("INSERT INTO told (name, job_id) VALUES ($1, $2)", event.name, event.subject)


@pytest.fixture
async def told(hot: Connection, monkeypatch: pytest.MonkeyPatch) -> Told:
    """What listeners wrote down, in the transactions that they were called in: the event, and the job."""
    await hot.execute("CREATE TABLE told (name text, job_id uuid, id serial)")
    monkeypatch.setattr(endings, "listeners", lambda: (write_it_down,))

    async def read() -> list[tuple[str, str]]:
        rows = await hot.fetch("SELECT name, job_id FROM told ORDER BY id")
        return [(row["name"], str(row["job_id"])) for row in rows]

    return read


async def test_a_success_is_told_and_only_of_kinds_that_tell(hot: Connection, told: Told) -> None:
    telling, quiet = await one_job(hot, TELLING), await one_job(hot, QUIET)
    worker = await start_worker(hot)
    claimed = await take(hot, worker)
    done = await succeed(hot, worker.id, [(one.id, one.token) for one in claimed])
    assert done == {telling, quiet}
    assert await told() == [("job.succeeded", str(telling))]


async def test_many_jobs_end_at_once_and_each_is_told(hot: Connection, told: Told) -> None:
    jobs = await some_jobs(hot, 150, TELLING)  # so many are copied in
    worker = await start_worker(hot)
    claimed = await take(hot, worker, 200)
    await succeed(hot, worker.id, [(one.id, one.token) for one in claimed])
    assert sorted(await told()) == sorted(("job.succeeded", str(job)) for job in jobs)


async def test_an_end_that_is_rolled_back_was_never_told(hot: Connection, db: Database, told: Told) -> None:
    worker, claimed = await running_job(hot, TELLING)
    with pytest.raises(RuntimeError):
        async with db.transaction() as session:
            await succeed(await driver(session), worker.id, [(claimed.id, claimed.token)])
            raise RuntimeError("the handler changes its mind")
    assert await told() == []


@pytest.mark.parametrize(
    ("attempts", "retryable", "name"),
    [(0, True, None), (2, True, "job.dead_letter"), (0, False, "job.failed")],
)
async def test_failures_are_told_when_they_are_final(
    hot: Connection, told: Told, attempts: int, retryable: bool, name: str | None
) -> None:
    worker, claimed = await running_job(hot, TELLING)
    outcome = judge(replace(claimed, attempts=attempts), failure(retryable=retryable), WORK.retry)
    await settle(hot, worker.id, [(claimed.id, claimed.token, outcome)])
    assert await told() == ([(name, str(claimed.id))] if name else [])


async def test_a_release_is_no_end(hot: Connection, told: Told) -> None:
    worker, claimed = await running_job(hot, TELLING)
    await settle(hot, worker.id, [(claimed.id, claimed.token, released("later"))])
    assert await told() == []


async def test_a_cancelled_family_is_told_of_one_by_one(hot: Connection, told: Told) -> None:
    family = await enqueue_family(hot, NewJob(TELLING, "acme"), [NewJob(TELLING, "acme"), NewJob(QUIET, "acme")])
    await cancel(hot, family.parent.id)
    expected = [("job.cancelled", str(one)) for one in (family.parent.id, family.children[0].id)]
    assert sorted(await told()) == sorted(expected)


async def test_jobs_cancelled_by_a_filter_are_told_of(hot: Connection, db: Database, told: Told) -> None:
    jobs = await some_jobs(hot, 3, TELLING)
    async for _ in bulk.cancel(db.hot, JobFilter(kind=TELLING.name)):
        pass
    assert sorted(await told()) == sorted(("job.cancelled", str(job)) for job in jobs)


async def test_a_job_that_took_its_worker_down_for_the_last_time_is_told(
    hot: Connection, clock: Clock, told: Told
) -> None:
    kind = JobKind("work", max_crashes=1, tells_end=True)
    _, claimed = await running_job(hot, kind)
    await clock.forward(TTL + 1)
    await rescue(hot, settle_time=NO_SETTLE)
    assert await state(hot, claimed.id) is State.DEAD_LETTER
    assert await told() == [("job.dead_letter", str(claimed.id))]


async def test_a_listener_that_fails_keeps_no_job_from_ending(
    hot: Connection, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(connection: Connection, event: Event) -> None:
        await write_it_down(connection, event)
        await connection.execute("SELECT * FROM no_such_table")

    monkeypatch.setattr(endings, "listeners", lambda: (broken, write_it_down))
    worker, claimed = await running_job(hot, TELLING)
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == {claimed.id}
    assert await events(hot, claimed.id) == ["succeeded"]
    assert await told() == [("job.succeeded", str(claimed.id))], "of the one that works; the other's is undone"


async def test_a_stale_owner_tells_nothing(hot: Connection, clock: Clock, told: Told) -> None:
    stale, claimed = await running_job(hot, TELLING)
    await clock.forward(TTL + 1)
    await rescue(hot, settle_time=NO_SETTLE)
    await take_isolated(hot, await start_worker(hot))
    assert await succeed(hot, stale.id, [(claimed.id, claimed.token)]) == set()
    assert await told() == []
