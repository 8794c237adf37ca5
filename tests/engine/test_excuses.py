"""Who pays for a run that a dependency let down: nobody in an outage, and a document that only ever fails by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.breakers import CONVERT, CONVERTER, POLICY, claim_gated, converter_worker, fail
from support.clock import Clock
from support.engine import events, one_job, row, some_jobs
from waybill.db.database import Connection
from waybill.errors import DependencyFault, GatewayTimedOut, GatewayUnavailable, RateLimited
from waybill.errors import GatewayUnreachable as Unreachable
from waybill.failures import classify
from waybill_engine import ClaimedJob, State
from waybill_engine.breaker_control import reset
from waybill_engine.breaker_counts import CallCount, record
from waybill_engine.control import retry
from waybill_engine.excuses import Excuse
from waybill_engine.lease import WorkerInfo
from waybill_engine.let_downs import settle_let_down
from waybill_engine.promotion import promote_due
from waybill_engine.retry import RetryPolicy

REFUSED = Unreachable(dependency=CONVERTER)
BAD_ANSWER = GatewayUnavailable(dependency=CONVERTER)
SILENCE = GatewayTimedOut(dependency=CONVERTER)


async def let_down(
    connection: Connection, worker: WorkerInfo, claimed: ClaimedJob, error: Exception = BAD_ANSWER
) -> State | None:
    failure = classify(error)
    return await settle_let_down(connection, claimed, failure, CONVERT.blamed(failure), CONVERT.retry, POLICY)


async def again(connection: Connection, clock: Clock, worker: WorkerInfo) -> ClaimedJob:
    """The only job's next run, as soon as it is due."""
    await clock.forward(1000)
    await promote_due(connection)
    await reset(connection, CONVERTER)
    (claimed,) = await claim_gated(connection, worker)
    return claimed


async def works_for_others(connection: Connection) -> None:
    await record(connection, [CallCount(CONVERTER, 1, 0)], POLICY)


@pytest.mark.parametrize("error", [REFUSED, BAD_ANSWER, SILENCE, DependencyFault()])
async def test_a_job_that_is_alone_with_a_dependency_that_is_down_pays_nothing(
    hot: Connection, clock: Clock, error: Exception
) -> None:
    worker = await converter_worker(hot)
    await works_for_others(hot)
    job = await one_job(hot, CONVERT)
    for _ in range(10):
        claimed = await again(hot, clock, worker)
        assert await let_down(hot, worker, claimed, error) is State.SCHEDULED
    assert (await row(hot, job))["attempts"] == 0
    assert await events(hot, job) == ["postponed"] * 10


async def test_a_document_that_always_fails_while_others_succeed_ends_charged(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    job = await one_job(hot, CONVERT)
    states = []
    for _ in range(4):
        claimed = await again(hot, clock, worker)
        states.append(await let_down(hot, worker, claimed))
        await works_for_others(hot)
    assert states == [State.SCHEDULED] * 3 + [State.DEAD_LETTER]
    assert await events(hot, job) == ["postponed", "retry_scheduled", "retry_scheduled", "dead_lettered"]


async def test_a_dependency_that_was_away_is_never_the_documents_fault(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    job = await one_job(hot, CONVERT)
    for _ in range(6):
        await let_down(hot, worker, await again(hot, clock, worker), REFUSED)
        await works_for_others(hot)  # through another door
    assert (await row(hot, job))["attempts"] == 0


async def test_what_succeeded_before_the_outage_is_no_evidence(hot: Connection, clock: Clock) -> None:
    """The report of a success may come late; what counts is when it happened."""
    worker = await converter_worker(hot)
    job = await one_job(hot, CONVERT)
    await let_down(hot, worker, await again(hot, clock, worker))
    claimed = await again(hot, clock, worker)
    await record(hot, [CallCount(CONVERTER, 1, 0, succeeded_ago=2000.0)], POLICY)
    await let_down(hot, worker, claimed)
    assert (await row(hot, job))["attempts"] == 0


async def test_patience_is_bounded_whatever_the_excuse(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    for error in (
        REFUSED,
        BAD_ANSWER,
        GatewayUnavailable(dependency=CONVERTER, retry_after=0),
        RateLimited(retry_after=1),
    ):
        job = await one_job(hot, CONVERT)
        await let_down(hot, worker, await again(hot, clock, worker), error)
        await clock.forward(POLICY.patience)
        for charged in (1, 2, 3):
            await fail(hot)  # an open breaker excuses it no longer either
            claimed = await again(hot, clock, worker)
            await let_down(hot, worker, claimed, error)
            assert (await row(hot, job))["attempts"] == charged
        assert (await row(hot, job))["state"] == "dead_letter"


async def test_a_persons_retry_begins_with_all_its_patience(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    job = await one_job(hot, CONVERT)
    await let_down(hot, worker, await again(hot, clock, worker))
    await clock.forward(POLICY.patience)
    for _ in range(3):
        await let_down(hot, worker, await again(hot, clock, worker))
    await retry(hot, job)
    assert await let_down(hot, worker, await again(hot, clock, worker)) is State.SCHEDULED
    assert (await row(hot, job))["attempts"] == 0


async def test_a_job_that_fails_alone_is_tried_less_and_less_often(hot: Connection, clock: Clock) -> None:
    worker = await converter_worker(hot)
    job = await one_job(hot, CONVERT)
    waits = []
    for _ in range(7):
        claimed = await again(hot, clock, worker)
        await let_down(hot, worker, claimed)
        waits.append(
            await hot.fetchval("SELECT extract(epoch FROM run_at - updated_at)::int FROM jobs WHERE id = $1", job)
        )
    assert waits == [10, 20, 40, 80, 160, 300, 300]


async def test_those_who_were_sent_away_together_do_not_come_back_together(hot: Connection) -> None:
    worker = await converter_worker(hot)
    await some_jobs(hot, 20, CONVERT)
    for claimed in await claim_gated(hot, worker):
        await let_down(hot, worker, claimed, GatewayUnavailable(dependency=CONVERTER, retry_after=60))
    returns = await hot.fetch("SELECT extract(epoch FROM run_at - updated_at) AS wait FROM jobs")
    assert all(60 <= one["wait"] <= 66.1 for one in returns)
    assert len({round(one["wait"], 2) for one in returns}) > 10


def test_a_wait_of_nothing_is_still_a_second() -> None:
    assert 1.0 <= Excuse(1.0).delay(RetryPolicy()) <= 2.0


async def test_a_run_that_lost_its_job_neither_keeps_the_fleet_away_nor_writes_its_end(hot: Connection) -> None:
    worker = await converter_worker(hot)
    job = await one_job(hot, CONVERT)
    (claimed,) = await claim_gated(hot, worker)
    stale = replace(claimed, token=claimed.token - 1)
    with pytest.raises(Exception, match=r"."):
        await let_down(hot, worker, stale, GatewayUnavailable(dependency=CONVERTER, retry_after=60))
    assert await hot.fetchval("SELECT count(*) FROM breakers") == 0
    assert (await row(hot, job))["state"] == "running"
