"""One row renews the lease of all a worker's jobs, and the answer says which jobs those are."""

from __future__ import annotations

import asyncio
import math

from support.clock import Clock
from support.engine import (
    NO_SETTLE,
    TTL,
    Connect,
    one_job,
    row,
    running_job,
    some_jobs,
    start_worker,
    take,
    take_isolated,
    until_blocked,
)
from waybill.db.database import Connection
from waybill_engine import State
from waybill_engine.control import cancel
from waybill_engine.finish import succeed
from waybill_engine.lease import Progress, drain, holdings, renew, stop, write_progress
from waybill_engine.rescue import rescue, rescue_worker


async def test_a_worker_learns_which_jobs_it_has(hot: Connection) -> None:
    await some_jobs(hot, 3)
    worker, other = await start_worker(hot), await start_worker(hot)
    assert (await holdings(hot, worker.id)).tokens == {}
    mine = await take(hot, worker, 2)
    await take(hot, other)
    held = await holdings(hot, worker.id)
    assert held.tokens == {claimed.id: claimed.token for claimed in mine}
    assert held.stop == frozenset()


async def test_a_renewed_lease_is_not_rescued_and_one_that_is_not_renewed_is(hot: Connection, clock: Clock) -> None:
    steady, silent = await running_job(hot), await running_job(hot)
    for _ in range(4):
        await clock.forward(20)
        await renew(hot, steady[0].id, TTL)
    rescued = await rescue(hot, settle_time=NO_SETTLE)
    assert [one.id for one in rescued] == [silent[1].id]


async def test_a_renewal_touches_no_job(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    before = await hot.fetchrow("SELECT xmin, ctid, updated_at FROM jobs WHERE id = $1", claimed.id)
    await renew(hot, worker.id, TTL)
    assert await hot.fetchrow("SELECT xmin, ctid, updated_at FROM jobs WHERE id = $1", claimed.id) == before


async def test_a_worker_learns_which_jobs_it_should_stop(hot: Connection) -> None:
    worker = await start_worker(hot)
    first, second = await some_jobs(hot, 2)
    await take(hot, worker)
    await cancel(hot, second)
    held = await holdings(hot, worker.id)
    assert held.stop == {second}
    assert held.tokens.keys() == {first, second}


async def test_a_worker_that_was_given_up_never_comes_back(hot: Connection, clock: Clock) -> None:
    worker, _lease = await running_job(hot)
    await clock.forward(TTL + 1)
    await rescue(hot, settle_time=NO_SETTLE)
    assert not await renew(hot, worker.id, TTL)
    assert (await holdings(hot, worker.id)).tokens == {}
    await drain(hot, worker.id)
    await stop(hot, worker.id)
    assert await hot.fetchval("SELECT state FROM workers WHERE id = $1", worker.id) == "gone"


async def test_an_expired_lease_nobody_rescued_yet_can_be_renewed(hot: Connection, clock: Clock) -> None:
    worker, claimed = await running_job(hot)
    await clock.forward(TTL * 10)
    assert await renew(hot, worker.id, TTL)
    assert (await holdings(hot, worker.id)).tokens == {claimed.id: claimed.token}
    assert await rescue(hot, settle_time=NO_SETTLE) == []


async def test_a_draining_worker_keeps_its_lease(hot: Connection, clock: Clock) -> None:
    worker, claimed = await running_job(hot)
    await drain(hot, worker.id)
    await clock.forward(TTL - 1)
    assert await renew(hot, worker.id, TTL)
    await clock.forward(TTL - 1)
    assert await rescue(hot, settle_time=NO_SETTLE) == []
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == {claimed.id}


async def test_a_worker_that_stops_leaves_no_job_behind(hot: Connection, clock: Clock) -> None:
    """It may have one without knowing: a claim whose answer was lost with its connection."""
    worker, claimed = await running_job(hot)
    await drain(hot, worker.id)
    await stop(hot, worker.id)
    await clock.forward(TTL * 10)
    await rescue(hot, settle_time=NO_SETTLE)
    await rescue_worker(hot, worker.id)
    assert (await row(hot, claimed.id))["state"] != "running", "kept for ever by a worker that stopped"


async def test_no_claim_slips_in_once_a_worker_is_draining(connect: Connect) -> None:
    claiming, draining = await connect(), await connect()
    worker = await start_worker(claiming)
    await one_job(claiming)
    async with claiming.transaction():
        await take(claiming, worker)
        waiting = asyncio.create_task(drain(draining, worker.id))
        await until_blocked(claiming, draining)
    await waiting
    assert len((await holdings(draining, worker.id)).tokens) == 1


# Progress


async def test_progress_is_written_for_the_holder(hot: Connection) -> None:
    _, claimed = await running_job(hot)
    assert await write_progress(hot, [Progress(claimed.id, claimed.token, claimed.worker_id, 0.25, "page 1 of 4")]) == {
        claimed.id
    }
    job = await row(hot, claimed.id)
    assert (job["progress"], job["progress_message"]) == (0.25, "page 1 of 4")


async def test_progress_of_a_stale_owner_changes_nothing(hot: Connection, clock: Clock) -> None:
    _, claimed = await running_job(hot)
    await clock.forward(TTL + 1)
    await rescue(hot, settle_time=NO_SETTLE)
    before = await row(hot, claimed.id)
    assert await write_progress(hot, [Progress(claimed.id, claimed.token, claimed.worker_id, 0.9, "stale")]) == set()
    assert await row(hot, claimed.id) == before


async def test_progress_of_an_ended_job_stays(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await succeed(hot, worker.id, [(claimed.id, claimed.token)])
    assert await write_progress(hot, [Progress(claimed.id, claimed.token, claimed.worker_id, 0.5, "late")]) == set()
    assert (await row(hot, claimed.id))["progress"] == 1


async def test_progress_stays_on_its_page(hot: Connection) -> None:
    """No index entry is written: the update is HOT as long as the page has room."""
    _, claimed = await running_job(hot)
    for step in range(5):
        await write_progress(hot, [Progress(claimed.id, claimed.token, claimed.worker_id, step / 5, None)])
    await hot.execute("SELECT pg_stat_force_next_flush()")
    done = await hot.fetchrow("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'jobs'")
    assert done is not None
    assert done["n_tup_upd"] - done["n_tup_hot_upd"] <= 1  # the claim


async def test_progress_waits_for_nobodys_lock(hot: Connection, connect: Connect) -> None:
    """Whoever ends a child locks it, then its parent; the progress of both must not lock them the other way round."""
    parent, child = (await running_job(hot))[1], (await running_job(hot))[1]
    ending = await connect()
    news = [Progress(one.id, one.token, one.worker_id, 0.5, None) for one in (parent, child)]
    async with ending.transaction(), asyncio.timeout(10):
        await ending.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", child.id)
        assert await write_progress(hot, news) == {parent.id}
        await ending.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", parent.id)
    assert await write_progress(hot, news) == {parent.id, child.id}


async def test_odd_progress_of_one_job_neither_fails_the_others_nor_is_shown_as_it_is(hot: Connection) -> None:
    odd_news = [(0.5, "a\0b"), (0.5, "\udc80"), (math.nan, None), (math.inf, None), (-1.0, None), (7.0, None)]
    odd, fine = (await running_job(hot))[1], (await running_job(hot))[1]
    wrong: dict[object, str] = {}
    for number, (fraction, message) in enumerate(odd_news):
        news = [
            Progress(odd.id, odd.token, odd.worker_id, fraction, message),
            Progress(fine.id, fine.token, fine.worker_id, 0.5, f"fine {number}"),
        ]
        try:
            await write_progress(hot, news)
            assert (await row(hot, fine.id))["progress_message"] == f"fine {number}"
            shown = (await row(hot, odd.id))["progress"]
            assert shown is None or 0 <= shown <= 1
        except Exception as error:  # noqa: BLE001 - any is the finding
            wrong[fraction, message] = repr(error)
    assert wrong == {}


async def test_a_new_run_starts_without_the_progress_of_the_last(hot: Connection, clock: Clock) -> None:
    worker, claimed = await running_job(hot)
    await write_progress(hot, [Progress(claimed.id, claimed.token, claimed.worker_id, 0.7, "nearly")])
    await rescue_worker(hot, worker.id)
    again = await start_worker(hot)
    (second,) = await take_isolated(hot, again)
    job = await row(hot, second.id)
    assert (job["progress"], job["progress_message"], job["state"]) == (None, None, State.RUNNING)
