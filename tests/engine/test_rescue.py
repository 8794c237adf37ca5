"""When a worker is gone its jobs go back, and only the guilty are charged."""

from __future__ import annotations

import asyncio

from support.clock import Clock
from support.engine import (
    NO_SETTLE,
    TTL,
    WORK,
    Connect,
    count,
    events,
    failure,
    find_contradictions,
    one_job,
    row,
    running_job,
    some_jobs,
    start_worker,
    state,
    states,
    stored,
    take,
    take_isolated,
    until_blocked,
)
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill_engine import JobKind, State
from waybill_engine.artefacts import publish
from waybill_engine.control import cancel
from waybill_engine.finish import judge, released, settle, succeed
from waybill_engine.lease import drain, renew
from waybill_engine.rescue import look_for_trouble, release_all, rescue, rescue_worker
from waybill_engine.retry import RetryPolicy


async def test_a_job_that_ran_alone_is_charged_a_crash(hot: Connection, clock: Clock) -> None:
    worker, claimed = await running_job(hot)
    assert await rescue(hot, settle_time=NO_SETTLE) == []
    await clock.forward(TTL + 1)
    (rescued,) = await rescue(hot, settle_time=NO_SETTLE)
    assert (rescued.id, rescued.event, rescued.worker) == (claimed.id, "crashed", worker.name)
    job = await row(hot, claimed.id)
    assert (job["state"], job["attempts"], job["crashes"], job["lease_owner"]) == ("queued", 1, 1, None)
    assert (job["error_code"], job["lease_token"]) == ("WORKER_CRASHED", claimed.token)
    assert await rescue(hot, settle_time=NO_SETTLE) == []


async def test_a_job_that_keeps_killing_its_worker_is_dead_lettered_with_that_cause(hot: Connection) -> None:
    kind = JobKind("work", retry=RetryPolicy(retries=9), max_crashes=3)
    job_id = await one_job(hot, kind)
    for number in range(3):
        worker = await start_worker(hot)
        claimed_jobs = await take_isolated(hot, worker) if number else await take(hot, worker)
        assert [claimed.id for claimed in claimed_jobs] == [job_id]
        await rescue_worker(hot, worker.id)
    job = await row(hot, job_id)
    assert (job["state"], job["crashes"], job["error_code"]) == ("dead_letter", 3, "WORKER_CRASHED")
    assert await events(hot, job_id) == ["crashed", "crashed", "dead_lettered"]


async def test_the_crash_budget_never_exceeds_the_attempts(hot: Connection) -> None:
    worker, claimed = await running_job(hot, JobKind("work", retry=RetryPolicy(retries=0), max_crashes=3))
    await rescue_worker(hot, worker.id)
    job = await row(hot, claimed.id)
    assert (job["state"], job["attempts"], job["error_code"]) == ("dead_letter", 1, "WORKER_CRASHED")


async def test_after_a_restore_everything_that_ran_is_released_and_nothing_charged(hot: Connection) -> None:
    _, only = await running_job(hot, JobKind("work", retry=RetryPolicy(retries=0), max_crashes=1))
    jobs = await some_jobs(hot, 2)
    busy = await start_worker(hot)
    await take(hot, busy)
    await cancel(hot, jobs[0])
    released_jobs = await release_all(hot)
    assert {(one.id, one.event) for one in released_jobs} == {
        (only.id, "released"),
        (jobs[0], "cancelled"),
        (jobs[1], "released"),
    }
    for job_id in (only.id, jobs[1]):
        job = await row(hot, job_id)
        assert (job["state"], job["attempts"], job["crashes"], job["isolate"]) == ("queued", 0, 0, False)
    assert await hot.fetchval("SELECT count(*) FROM workers WHERE state = 'gone'") == 2
    assert await release_all(hot) == []


async def test_of_several_jobs_none_is_charged_and_all_run_alone_next(hot: Connection) -> None:
    jobs = await some_jobs(hot, 5)
    worker = await start_worker(hot)
    await take(hot, worker)
    rescued = await rescue_worker(hot, worker.id)
    assert {one.event for one in rescued} == {"suspected"}
    for job_id in jobs:
        job = await row(hot, job_id)
        assert (job["state"], job["attempts"], job["crashes"], job["isolate"]) == ("queued", 0, 0, True)
        assert job["error_code"] is None


async def test_the_guilty_one_of_several_is_found_and_the_innocent_are_unharmed(hot: Connection) -> None:
    jobs = await some_jobs(hot, 4)
    guilty = jobs[2]
    worker = await start_worker(hot)
    await take(hot, worker)
    await rescue_worker(hot, worker.id)
    for _ in range(30):
        worker = await start_worker(hot)
        claimed_jobs = await take_isolated(hot, worker)
        if not claimed_jobs:
            break
        if claimed_jobs[0].id == guilty:
            await rescue_worker(hot, worker.id)
        else:
            await succeed(hot, worker.id, [(claimed_jobs[0].id, claimed_jobs[0].token)])
    assert await states(hot, jobs) == [State.DEAD_LETTER if one == guilty else State.SUCCEEDED for one in jobs]
    assert [(await row(hot, one))["attempts"] for one in jobs] == [0, 0, WORK.retry.max_attempts, 0]


async def test_a_suspect_that_was_released_still_runs_alone(hot: Connection) -> None:
    await some_jobs(hot, 2)
    worker = await start_worker(hot)
    await take(hot, worker)
    await rescue_worker(hot, worker.id)
    alone = await start_worker(hot)
    (claimed,) = await take_isolated(hot, alone)
    await settle(hot, alone.id, [(claimed.id, claimed.token, released("evicted"))])
    assert (await row(hot, claimed.id))["isolate"]
    assert await take(hot, alone) == []


async def test_a_suspect_that_ran_to_its_end_is_no_suspect_any_more(hot: Connection) -> None:
    await some_jobs(hot, 2)
    worker = await start_worker(hot)
    await take(hot, worker)
    await rescue_worker(hot, worker.id)
    alone = await start_worker(hot)
    (claimed,) = await take_isolated(hot, alone)
    await settle(hot, alone.id, [(claimed.id, claimed.token, judge(claimed, failure(), WORK.retry))])
    assert not (await row(hot, claimed.id))["isolate"]


async def test_a_job_that_should_stop_is_cancelled_and_not_blamed(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await cancel(hot, claimed.id)
    (rescued,) = await rescue_worker(hot, worker.id)
    assert rescued.event == "cancelled"
    job = await row(hot, claimed.id)
    assert (job["state"], job["attempts"], job["crashes"], job["error_code"]) == ("cancelled", 0, 0, "CANCELLED")


async def test_what_the_worker_finished_before_it_died_counts(hot: Connection) -> None:
    first, second = await some_jobs(hot, 2)
    worker = await start_worker(hot)
    claimed_jobs = await take(hot, worker)
    await succeed(hot, worker.id, [(first, claimed_jobs[0].token)])
    assert [one.event for one in await rescue_worker(hot, worker.id)] == ["crashed"]
    assert await states(hot, [first, second]) == [State.SUCCEEDED, State.QUEUED]


async def test_a_worker_killed_while_it_drained_charges_nobody(hot: Connection) -> None:
    """It had been told to stop and its time was up: a deploy, not a crash."""
    worker, claimed = await running_job(hot)
    await drain(hot, worker.id)
    assert [one.event for one in await rescue_worker(hot, worker.id)] == ["released"]
    job = await row(hot, claimed.id)
    assert (job["state"], job["attempts"], job["crashes"], job["isolate"]) == ("queued", 0, 0, False)


async def test_a_lease_that_ran_out_while_postgres_was_away_charges_nobody(hot: Connection, clock: Clock) -> None:
    """Nobody can know whether its worker crashed or was cut off: it runs alone next, uncharged."""
    _, claimed = await running_job(hot)
    await hot.execute(SEEN_BEFORE_THE_SERVER_STARTED)
    await clock.forward(TTL + 1)
    assert [one.event for one in await rescue(hot, settle_time=NO_SETTLE)] == ["suspected"]
    assert (await row(hot, claimed.id))["crashes"] == 0


SEEN_BEFORE_THE_SERVER_STARTED = """
UPDATE workers SET last_seen_at = pg_postmaster_start_time() - interval '1 second'
"""


async def test_a_worker_that_held_nothing_is_simply_gone(hot: Connection, clock: Clock) -> None:
    worker = await start_worker(hot)
    await clock.forward(TTL + 1)
    assert await rescue(hot, settle_time=NO_SETTLE) == []
    assert await hot.fetchval("SELECT state FROM workers WHERE id = $1", worker.id) == "gone"


async def test_after_an_outage_workers_get_time_to_come_back_whoever_looks(hot: Connection, clock: Clock) -> None:
    """It expired every lease at once. The one who looks may have just started, like a janitor."""
    (alive, busy), (_dead, lost) = await running_job(hot), await running_job(hot)
    await hot.execute(SEEN_BEFORE_THE_SERVER_STARTED)
    await clock.forward(TTL + 1)
    assert (await look_for_trouble(hot, [], [], settle_time=60)).gone
    assert await rescue(hot, settle_time=60) == []
    assert not (await look_for_trouble(hot, [], [], settle_time=60)).gone, "there is nothing to do for now"
    await renew(hot, alive.id, TTL)
    await clock.forward(59)
    assert await rescue(hot, settle_time=60) == []
    assert await states(hot, [busy.id, lost.id]) == [State.RUNNING, State.RUNNING]
    await clock.forward(2)
    await renew(hot, alive.id, TTL)
    assert [(one.id, one.event) for one in await rescue(hot, settle_time=60)] == [(lost.id, "suspected")]


async def test_a_worker_that_dies_after_the_outage_is_rescued_at_once(hot: Connection, clock: Clock) -> None:
    worker, claimed = await running_job(hot)
    await hot.execute(SEEN_BEFORE_THE_SERVER_STARTED)
    await renew(hot, worker.id, TTL)
    await clock.forward(TTL + 1)
    assert [(one.id, one.event) for one in await rescue(hot, settle_time=60)] == [(claimed.id, "crashed")]


async def test_every_worker_is_rescued_even_if_there_are_many(hot: Connection, clock: Clock) -> None:
    jobs = [(await running_job(hot))[1].id for _ in range(45)]
    await clock.forward(TTL + 1)
    rescued = set()
    while found := await rescue(hot, settle_time=NO_SETTLE):
        rescued |= {one.id for one in found}
    assert rescued == set(jobs)


# At the same time


async def test_several_rescuers_charge_once(connect: Connect, clock: Clock) -> None:
    connections = [await connect() for _ in range(8)]
    jobs = [(await running_job(connections[0]))[1].id for _ in range(30)]
    await clock.forward(TTL + 1)

    async def rescue_all(connection: Connection) -> list[object]:
        found: list[object] = []
        while got := await rescue(connection, settle_time=NO_SETTLE):
            found += [one.id for one in got]
        return found

    found = [one for group in await asyncio.gather(*map(rescue_all, connections)) for one in group]
    assert sorted(map(str, found)) == sorted(map(str, jobs))
    assert await count(connections[0], "crashes = 1 AND attempts = 1 AND state = 'queued'") == 30
    assert await find_contradictions(connections[0]) == []


async def test_a_rescue_that_met_a_renewal_leaves_the_worker_alone(connect: Connect, clock: Clock) -> None:
    renewing, rescuing = await connect(), await connect()
    worker, claimed = await running_job(renewing)
    await clock.forward(TTL + 1)
    async with renewing.transaction():
        await renew(renewing, worker.id, TTL)
        assert await rescue(rescuing, settle_time=NO_SETTLE) == []  # does not wait for it
    assert await rescue(rescuing, settle_time=NO_SETTLE) == []
    assert await state(renewing, claimed.id) is State.RUNNING


async def test_a_claim_under_way_is_seen_by_the_rescue_that_follows(connect: Connect) -> None:
    claiming, rescuing = await connect(), await connect()
    worker = await start_worker(claiming)
    job_id = await one_job(claiming)
    async with claiming.transaction():
        await take(claiming, worker)
        waiting = asyncio.create_task(rescue_worker(rescuing, worker.id))
        await until_blocked(claiming, rescuing)
    assert [one.id for one in await waiting] == [job_id]
    assert await find_contradictions(claiming) == []


async def test_a_claim_that_waited_for_its_own_rescue_takes_nothing(connect: Connect) -> None:
    claiming, rescuing = await connect(), await connect()
    worker = await start_worker(claiming)
    await one_job(claiming)
    async with rescuing.transaction():
        await rescue_worker(rescuing, worker.id)
        waiting = asyncio.create_task(take(claiming, worker))
        await until_blocked(rescuing, claiming)
    assert await waiting == []
    assert await count(claiming, "state = 'queued'") == 1


async def test_a_worker_frozen_inside_its_transaction_does_not_keep_the_others_from_being_rescued(
    db: Database, connect: Connect, clock: Clock
) -> None:
    """Its row lock lives as long as its connection: with a frozen process or a vanished machine, for hours."""
    rescuing = await connect()
    _frozen_worker, frozen = await running_job(rescuing)
    others = [(await running_job(rescuing))[1].id for _ in range(3)]
    await clock.forward(TTL + 1)
    async with db.transaction() as session:
        await publish(
            await driver(session), frozen.worker_id, frozen.id, frozen.token, "out", stored("k"), "text/plain"
        )
        # From here on its process hears nothing.
        async with asyncio.timeout(5):
            while await count(rescuing, f"id = ANY ('{{{','.join(map(str, others))}}}') AND state = 'running'"):
                await rescue(rescuing, settle_time=NO_SETTLE)
    assert await states(rescuing, others) == [State.QUEUED] * 3


async def test_connections_end_transactions_their_process_forgot(db: Database) -> None:
    """What the lock of a frozen or vanished process hangs on; without a limit it hangs there for ever."""
    show = "SELECT setting::int FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
    async with db.transaction() as session:
        limit_of_sessions = await (await driver(session)).fetchval(show)
    async with db.hot() as connection:
        limit_of_engine = await connection.fetchval(show)
    assert limit_of_sessions > 0
    assert limit_of_engine > 0
