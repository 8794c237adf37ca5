"""Looking at jobs: lists that continue, a history that tells the whole life, queues and workers as they are."""

from __future__ import annotations

import pytest

from support.clock import Clock
from support.engine import (
    NO_SETTLE,
    OTHER,
    TTL,
    WORK,
    failure,
    one_job,
    running_job,
    some_jobs,
    start_worker,
    take,
    take_isolated,
)
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import NotFound
from waybill.ids import new_id
from waybill_engine import State
from waybill_engine.control import cancel, pause, retry
from waybill_engine.finish import judge, settle, succeed
from waybill_engine.lease import stop
from waybill_engine.promotion import promote_due
from waybill_engine.queries import get_job, history, list_jobs, list_workers, queue_stats
from waybill_engine.rescue import rescue


async def test_a_list_is_newest_first_and_continues_where_it_ended(db: Database, hot: Connection) -> None:
    jobs = (await some_jobs(hot, 7))[::-1]
    async with db.transaction() as session:
        first = await list_jobs(session, limit=3)
        rest = await list_jobs(session, before=first[-1].id)
    assert [job.id for job in [*first, *rest]] == jobs


async def test_a_list_can_be_narrowed(db: Database, hot: Connection) -> None:
    waiting, cancelled = await some_jobs(hot, 2)
    await cancel(hot, cancelled)
    other = await one_job(hot, OTHER, queue="night")
    async with db.transaction() as session:

        async def ids(**narrow: object) -> set[object]:
            return {job.id for job in await list_jobs(session, **narrow)}  # type: ignore[arg-type]

        assert await ids(states=[State.CANCELLED]) == {cancelled}
        assert await ids(states=[State.CANCELLED, State.QUEUED]) == {waiting, cancelled, other}
        assert await ids(kind="other") == {other}
        assert await ids(queue="night", states=[State.QUEUED]) == {other}
        assert await ids(tenant="acme", kind="work") == {waiting, cancelled}
        assert await ids(tenant="nobody") == set()


async def test_one_job_is_found_or_said_to_be_missing(db: Database, hot: Connection) -> None:
    job_id = await one_job(hot, payload={"n": 1})
    async with db.transaction() as session:
        assert (await get_job(session, job_id)).payload == {"n": 1}
        with pytest.raises(NotFound):
            await get_job(session, new_id())


async def test_the_history_tells_a_whole_life(db: Database, hot: Connection, clock: Clock) -> None:
    worker, claimed = await running_job(hot)
    await clock.forward(1)
    await settle(hot, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(), WORK.retry))])
    await clock.forward(11)
    await promote_due(hot)
    await take(hot, worker)
    await clock.forward(TTL + 1)
    await rescue(hot, settle_time=NO_SETTLE)
    await clock.forward(1)
    await cancel(hot, claimed.id)
    await clock.forward(1)
    await retry(hot, claimed.id)
    await clock.forward(1)
    last = await start_worker(hot)
    (final,) = await take_isolated(hot, last)

    async def told() -> list[tuple[str, str | None, int | None]]:
        async with db.transaction() as session:
            lines = await history(session, await get_job(session, claimed.id))
        assert [line.at for line in lines] == sorted(line.at for line in lines)
        return [(line.event, line.worker, line.lease_token) for line in lines]

    so_far: list[tuple[str, str | None, int | None]] = [
        ("enqueued", None, None),
        ("started", worker.name, 1),
        ("retry_scheduled", worker.name, 1),
        ("started", worker.name, 2),
        ("crashed", worker.name, 2),
        ("cancelled", None, None),
        ("retried", None, None),
        ("started", last.name, 3),
    ]
    assert await told() == so_far
    await clock.forward(1)
    await succeed(hot, last.id, [(final.id, final.token)])
    assert await told() == [*so_far, ("succeeded", last.name, 3)]


async def test_queues_are_counted_and_their_oldest_waiting_job_is_known(
    db: Database, hot: Connection, clock: Clock
) -> None:
    await some_jobs(hot, 2)
    await clock.forward(100)
    await some_jobs(hot, 1)
    await some_jobs(hot, 3, queue="night", delay=60.0)
    await pause(hot, "empty", "not yet")
    oldest = await hot.fetchval("SELECT min(created_at) FROM jobs")
    async with db.transaction() as session:
        default, empty, night = sorted(await queue_stats(session), key=lambda one: one.queue)
    assert (default.counts, default.oldest_queued_at, default.paused_at) == ({State.QUEUED: 3}, oldest, None)
    assert (night.counts, night.oldest_queued_at) == ({State.SCHEDULED: 3}, None)
    assert (empty.queue, empty.counts, empty.paused_reason) == ("empty", {}, "not yet")
    assert empty.paused_at is not None


async def test_workers_at_work_are_listed_and_the_others_on_demand(db: Database, hot: Connection) -> None:
    working, stopped = await start_worker(hot), await start_worker(hot)
    await stop(hot, stopped.id)
    async with db.transaction() as session:
        assert [one.id for one in await list_workers(session)] == [working.id]
        assert {one.id for one in await list_workers(session, everyone=True)} == {working.id, stopped.id}
