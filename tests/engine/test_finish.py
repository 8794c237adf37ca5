"""A run ends once, by its owner's hand, in the way its outcome says."""

from __future__ import annotations

import asyncio
import math
import random
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.clock import Clock
from support.engine import (
    NO_SETTLE,
    OTHER,
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
    take,
    until_blocked,
)
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill.errors import Cancelled, DatabaseUnavailable, RateLimited
from waybill.failures import classify
from waybill.ids import new_id
from waybill_engine import ClaimedJob, NewJob, Queue, State, enqueue
from waybill_engine.control import cancel
from waybill_engine.finish import RunOutcome, cancelled, judge, released, settle, succeed, succeeded_by
from waybill_engine.lease import WorkerInfo
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import rescue, rescue_worker


async def fail(connection: Connection, claimed: ClaimedJob, worker_id: Any, outcome: RunOutcome) -> State | None:
    return (await settle(connection, worker_id, [(claimed.id, claimed.token, outcome)])).get(claimed.id)


# Success


async def test_a_success_is_final_and_leaves_one_event(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == {claimed.id}
    job = await row(hot, claimed.id)
    assert (job["state"], job["lease_owner"], job["progress"], job["attempts"]) == ("succeeded", None, 1, 0)
    assert job["finished_at"] is not None
    assert await events(hot, claimed.id) == ["succeeded"]
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == set()
    assert await events(hot, claimed.id) == ["succeeded"]


async def test_a_batch_completes_what_is_ours_and_says_which(hot: Connection) -> None:
    await some_jobs(hot, 200)
    worker = await start_worker(hot)
    claimed_jobs = await take(hot, worker, 200)
    batch = [(claimed.id, claimed.token + (number % 2)) for number, claimed in enumerate(claimed_jobs)]
    random.Random(1).shuffle(batch)
    batch.append((new_id(), 1))
    done = await succeed(hot, worker.id, batch)
    assert done == {claimed.id for claimed in claimed_jobs[::2]}
    assert await count(hot, "state = 'succeeded'") == 100
    assert await succeed(hot, worker.id, []) == set()


async def test_a_handlers_rows_its_next_job_and_its_completion_commit_together(db: Database, hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    async with db.transaction() as session:
        session.add(Queue(name="written"))
        following = await enqueue(session, NewJob(OTHER, "acme"))
        assert await succeed(await driver(session), worker.id, [(claimed.id, claimed.token)]) == {claimed.id}
        assert await state(hot, claimed.id) is State.RUNNING
    assert await state(hot, claimed.id) is State.SUCCEEDED
    assert await state(hot, following.id) is State.QUEUED
    assert await hot.fetchval("SELECT count(*) FROM queues") == 1


async def test_a_handler_rolled_back_is_not_completed(db: Database, hot: Connection) -> None:
    worker, claimed = await running_job(hot)

    async def complete_then_fail() -> None:
        async with db.transaction() as session:
            await succeed(await driver(session), worker.id, [(claimed.id, claimed.token)])
            raise RuntimeError("the commit never happens")

    with pytest.raises(RuntimeError):
        await complete_then_fail()
    assert await state(hot, claimed.id) is State.RUNNING
    assert await events(hot, claimed.id) == []


# Failure


async def test_a_failure_is_tried_again_later_and_charged(hot: Connection, clock: Clock) -> None:
    worker, claimed = await running_job(hot)
    outcome = judge(claimed, failure(), WORK.retry)
    assert await fail(hot, claimed, worker.id, outcome) is State.SCHEDULED
    job = await row(hot, claimed.id)
    assert (job["attempts"], job["error_code"], job["error_message"]) == (1, "GW_5XX", "no luck")
    assert job["run_at"] - job["updated_at"] == timedelta(seconds=10)
    assert job["finished_at"] is None
    assert await take(hot, worker) == []
    await clock.forward(11)
    await promote_due(hot)
    (again,) = await take(hot, worker)
    assert (again.id, again.token, again.attempts) == (claimed.id, 2, 1)


async def test_retries_are_bounded_and_then_the_job_is_dead_lettered(hot: Connection, clock: Clock) -> None:
    job_id = await one_job(hot)
    worker = await start_worker(hot, ttl=1e6)
    for expected in (State.SCHEDULED, State.SCHEDULED, State.DEAD_LETTER):
        (claimed,) = await take(hot, worker)
        assert await fail(hot, claimed, worker.id, judge(claimed, failure(), WORK.retry)) is expected
        await clock.forward(3600)
        await promote_due(hot)
    job = await row(hot, job_id)
    assert (job["attempts"], job["max_attempts"]) == (3, 3)
    assert await take(hot, worker) == []
    assert await events(hot, job_id) == ["retry_scheduled", "retry_scheduled", "dead_lettered"]


async def test_a_permanent_error_is_never_tried_again(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    assert await fail(hot, claimed, worker.id, judge(claimed, failure(retryable=False), WORK.retry)) is State.FAILED
    assert (await row(hot, claimed.id))["finished_at"] is not None


async def test_a_wait_the_other_side_asked_for_costs_no_attempt(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    outcome = judge(claimed, classify(RateLimited(retry_after=120)), WORK.retry)
    assert await fail(hot, claimed, worker.id, outcome) is State.SCHEDULED
    job = await row(hot, claimed.id)
    assert job["attempts"] == 0
    assert job["run_at"] - job["updated_at"] == timedelta(seconds=120)
    assert await events(hot, claimed.id) == ["postponed"]


async def test_an_outage_of_our_own_database_costs_no_attempt(hot: Connection) -> None:
    _, claimed = await running_job(hot)
    outcome = judge(claimed, classify(DatabaseUnavailable()), WORK.retry)
    assert (outcome.state, outcome.charge) == (State.SCHEDULED, 0)


async def test_a_released_job_is_claimable_at_once_uncharged_and_as_it_was(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await fail(hot, claimed, worker.id, judge(claimed, failure(), replace(WORK.retry, base=0.0)))
    await promote_due(hot)
    (second,) = await take(hot, worker)
    assert await fail(hot, second, worker.id, released("shutting down")) is State.QUEUED
    job = await row(hot, claimed.id)
    assert (job["attempts"], job["error_message"], job["finished_at"]) == (1, "no luck", None)
    other = await start_worker(hot)
    assert [one.token for one in await take(hot, other)] == [3]


async def test_releasing_tells_the_workers(connect: Connect) -> None:
    mine, listener = await connect(), await connect()
    worker, claimed = await running_job(mine)
    heard: asyncio.Queue[str] = asyncio.Queue()
    await listener.add_listener("waybill_jobs", lambda *told: heard.put_nowait(str(told[3])))
    await fail(mine, claimed, worker.id, released("shutting down"))
    assert await asyncio.wait_for(heard.get(), 10) == "default"


async def test_many_ends_of_every_sort_in_one_batch(hot: Connection) -> None:
    await some_jobs(hot, 50)
    worker = await start_worker(hot)
    claimed_jobs = await take(hot, worker)
    outcomes = [
        judge(claimed_jobs[0], failure(), WORK.retry),
        judge(claimed_jobs[0], failure(retryable=False), WORK.retry),
        released("bye"),
        cancelled(classify(Cancelled())),
        judge(replace(claimed_jobs[0], attempts=2), failure(), WORK.retry),
    ]
    ends = [(claimed.id, claimed.token, outcomes[number % 5]) for number, claimed in enumerate(claimed_jobs)]
    random.Random(2).shuffle(ends)
    answer = await settle(hot, worker.id, ends)
    expected = [State.SCHEDULED, State.FAILED, State.QUEUED, State.CANCELLED, State.DEAD_LETTER]
    assert answer == {claimed.id: expected[number % 5] for number, claimed in enumerate(claimed_jobs)}
    for claimed in claimed_jobs:
        assert await state(hot, claimed.id) is answer[claimed.id]
    assert await find_contradictions(hot) == []
    assert await settle(hot, worker.id, []) == {}


# Text of documents ends up in errors, and it is not always text that Postgres takes

ODD: dict[str, dict[str, Any]] = {
    "NUL in the message": {"message": "bad byte \0 in header"},
    "half a surrogate in the message": {"message": "no such file: caf\udce9.pdf"},
    "NUL in the detail": {"detail": {"text": "a\0b"}},
    "NUL in a name of the detail": {"detail": {"a\0": 1}},
    "half a surrogate in the detail": {"detail": {"text": "\udce9"}},
    "not a number in the detail": {"detail": {"confidence": math.nan}},
    "a time in the detail": {"detail": {"at": datetime(2026, 1, 1, tzinfo=UTC)}},
    "bytes in the detail": {"detail": {"head": b"%PDF\x00"}},
}


async def test_an_error_with_odd_text_still_ends_its_run_and_spares_the_others(hot: Connection) -> None:
    wrong: dict[str, str] = {}
    worker = await start_worker(hot)
    for what, odd in ODD.items():
        await some_jobs(hot, 2)
        bad, good = await take(hot, worker)
        plain = judge(bad, failure(retryable=False), WORK.retry)
        try:
            answer = await settle(
                hot, worker.id, [(bad.id, bad.token, replace(plain, **odd)), (good.id, good.token, plain)]
            )
            assert answer == {bad.id: State.FAILED, good.id: State.FAILED}
        except Exception as error:  # noqa: BLE001 - any is the finding
            wrong[what] = repr(error)
    assert wrong == {}


async def test_an_exception_with_odd_text_still_ends_its_run(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    understood = classify(ValueError("invalid byte \0 at caf\udce9"))
    assert await fail(hot, claimed, worker.id, judge(claimed, understood, WORK.retry)) is State.SCHEDULED


# Cancelling


async def test_a_cancelled_run_says_why_it_ended(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await cancel(hot, claimed.id)
    assert await fail(hot, claimed, worker.id, cancelled(classify(Cancelled()))) is State.CANCELLED
    job = await row(hot, claimed.id)
    assert (job["error_code"], job["attempts"]) == ("CANCELLED", 0)
    assert await events(hot, claimed.id) == ["cancel_requested", "cancelled"]


@pytest.mark.parametrize("how", ["released", "failed"])
async def test_cancelling_wins_over_coming_back_and_says_so(hot: Connection, how: str) -> None:
    worker, claimed = await running_job(hot)
    await cancel(hot, claimed.id)
    outcome = released("bye") if how == "released" else judge(claimed, failure(), WORK.retry)
    assert await fail(hot, claimed, worker.id, outcome) is State.CANCELLED
    job = await row(hot, claimed.id)
    assert job["finished_at"] is not None
    assert job["error_code"] == "CANCELLED"


async def test_a_run_that_was_done_before_it_heard_of_the_cancellation_has_succeeded(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await cancel(hot, claimed.id)
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == {claimed.id}
    assert await state(hot, claimed.id) is State.SUCCEEDED


# The fence


async def test_a_stale_owner_can_end_nothing(hot: Connection, clock: Clock) -> None:
    worker, claimed = await running_job(hot)
    await clock.forward(TTL + 1)
    await rescue(hot, settle_time=NO_SETTLE)
    before, known = await row(hot, claimed.id), await events(hot, claimed.id)
    outcomes = [released("late"), cancelled(classify(Cancelled())), judge(claimed, failure(), WORK.retry)]
    assert await succeed(hot, worker.id, [(claimed.id, claimed.token)]) == set()
    for outcome in outcomes:
        assert await fail(hot, claimed, worker.id, outcome) is None
    assert await row(hot, claimed.id) == before
    assert await events(hot, claimed.id) == known


async def test_finish_and_rescue_at_once_never_both_end_a_run(connect: Connect) -> None:
    finishing, rescuing = await connect(), await connect()
    won = {"finish": 0, "rescue": 0}
    for number in range(60):
        jobs = await some_jobs(finishing, 3)
        worker = await start_worker(finishing)
        batch = [(claimed.id, claimed.token) for claimed in await take(finishing, worker)]

        async def finish(
            worker: WorkerInfo = worker, batch: list[tuple[uuid.UUID, int]] = batch, late: float = number % 8 / 1000
        ) -> set[uuid.UUID]:
            await asyncio.sleep(late)  # a rescue is several statements long: this meets it before, in and after each
            return await succeed(finishing, worker.id, batch)

        async def give_up(worker: WorkerInfo = worker) -> set[uuid.UUID]:
            return {one.id for one in await rescue_worker(rescuing, worker.id)}

        if number % 2:
            by_worker, by_rescue = await asyncio.gather(finish(), give_up())
        else:
            by_rescue, by_worker = await asyncio.gather(give_up(), finish())
        assert by_worker | by_rescue == set(jobs)
        assert not by_worker & by_rescue
        for job_id in jobs:
            assert await state(finishing, job_id) is (State.SUCCEEDED if job_id in by_worker else State.QUEUED)
            if job_id in by_rescue:
                await cancel(finishing, job_id)
        won["finish"] += bool(by_worker)
        won["rescue"] += bool(by_rescue)
    assert all(won.values()), f"one side always won, so this proved little: {won}"
    assert await find_contradictions(finishing) == []


async def test_a_finish_that_waited_for_a_rescue_ends_nothing(connect: Connect) -> None:
    finishing, rescuing = await connect(), await connect()
    worker, claimed = await running_job(finishing)
    async with rescuing.transaction():
        assert await rescue_worker(rescuing, worker.id)
        waiting = asyncio.create_task(succeed(finishing, worker.id, [(claimed.id, claimed.token)]))
        await until_blocked(rescuing, finishing)
    assert await waiting == set()
    assert await state(finishing, claimed.id) is State.QUEUED
    assert await find_contradictions(finishing) == []


# Did my commit arrive?


async def did_it_arrive(connection: Connection, worker: WorkerInfo, claimed: ClaimedJob) -> bool:
    async with connection.transaction():
        return bool(await succeeded_by(connection, worker.id, [(claimed.id, claimed.token), (new_id(), 1)]))


async def test_an_ambiguous_commit_is_resolved_by_ones_own_run(connect: Connect) -> None:
    finishing, asking = await connect(), await connect()
    worker, claimed = await running_job(finishing)
    assert not await did_it_arrive(asking, worker, claimed)
    transaction = finishing.transaction()
    await transaction.start()
    await succeed(finishing, worker.id, [(claimed.id, claimed.token)])
    question = asyncio.create_task(did_it_arrive(asking, worker, claimed))  # waits for the commit under way
    await until_blocked(finishing, asking)
    await transaction.commit()
    assert await question
    assert not await did_it_arrive(asking, await start_worker(asking), claimed), "it was not another worker's"


async def test_a_commit_that_did_not_arrive_is_seen_not_to_have(connect: Connect) -> None:
    finishing, asking = await connect(), await connect()
    worker, claimed = await running_job(finishing)
    transaction = finishing.transaction()
    await transaction.start()
    await succeed(finishing, worker.id, [(claimed.id, claimed.token)])
    question = asyncio.create_task(did_it_arrive(asking, worker, claimed))
    await transaction.rollback()
    assert not await question
    assert await succeed(asking, worker.id, [(claimed.id, claimed.token)]) == {claimed.id}


async def test_a_job_whose_every_run_ends_in_an_outage_is_charged_in_the_end(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    outage = classify(DatabaseUnavailable())
    runs = 0
    while await state(hot, claimed.id) is State.RUNNING:
        runs += 1
        await settle(hot, worker.id, [(claimed.id, claimed.token, judge(claimed, outage, WORK.retry))])
        await hot.execute("UPDATE jobs SET run_at = now() WHERE id = $1 AND state = 'scheduled'", claimed.id)
        await promote_due(hot)
        for again in await take(hot, worker):
            claimed = again
    assert await state(hot, claimed.id) is State.DEAD_LETTER
    job = await row(hot, claimed.id)
    assert (job["attempts"], job["outages"]) == (WORK.retry.max_attempts, 10)
    assert runs == 10 + WORK.retry.max_attempts


async def test_releases_and_waits_are_no_outages(hot: Connection) -> None:
    """A job that was released often, by deploys and evictions, is not charged for its first real outage."""
    worker, claimed = await running_job(hot)
    for number in range(30):
        outcome = released("a deploy") if number % 2 else judge(claimed, failure(charged=False), WORK.retry)
        await settle(hot, worker.id, [(claimed.id, claimed.token, outcome)])
        await hot.execute("UPDATE jobs SET run_at = now() WHERE state = 'scheduled'")
        await promote_due(hot)
        (claimed,) = await take(hot, worker)
    outcome = judge(claimed, classify(DatabaseUnavailable()), WORK.retry)
    assert (outcome.state, outcome.charge) == (State.SCHEDULED, 0)
