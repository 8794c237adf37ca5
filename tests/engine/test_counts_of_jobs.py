"""What happens to jobs is counted once, and only if it really happened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.engine import NO_SETTLE, OTHER, TTL, WORK, one_job, some_jobs, start_worker, take
from waybill.db.database import Connection
from waybill.telemetry.metrics import (
    BREAKER_TRANSITIONS,
    CATALOGUE,
    JOB_END_TO_END,
    JOBS_ENQUEUED,
    JOBS_FINISHED,
    JOBS_RESCUED,
)
from waybill_engine import NewJob, enqueue
from waybill_engine.breaker_control import reset, trip
from waybill_engine.control import cancel, retry
from waybill_engine.finish import RunOutcome, settle
from waybill_engine.models import State
from waybill_engine.rescue import rescue
from waybill_engine.unique_keys import Unique


@pytest.fixture(autouse=True)
def _from_zero() -> Iterator[None]:
    for metric in CATALOGUE:
        metric.reset()
    yield
    for metric in CATALOGUE:
        metric.reset()


def enqueued(kind: str) -> float:
    return JOBS_ENQUEUED.labels(kind, "").value


async def test_only_jobs_that_were_created_and_committed_are_counted(hot: Connection) -> None:
    await some_jobs(hot, 3)
    await some_jobs(hot, 150, OTHER)  # by COPY
    assert (enqueued("work"), enqueued("other")) == (3, 150)
    with pytest.raises(ZeroDivisionError):
        async with hot.transaction():
            await some_jobs(hot, 7)
            raise ZeroDivisionError
    assert enqueued("work") == 3
    for _ in range(2):
        await enqueue(hot, NewJob(WORK, "acme", unique=Unique("one")))
    assert enqueued("work") == 4, "the second found the first"


async def test_a_job_that_is_cancelled_while_it_waits_is_counted_as_ended(hot: Connection) -> None:
    await cancel(hot, await one_job(hot))
    assert JOBS_FINISHED.labels("work", "cancelled", "").value == 1


async def test_a_rescue_counts_its_verdicts_and_the_jobs_it_ends(hot: Connection) -> None:
    job_id = await one_job(hot)
    for _ in range(3):
        worker = await start_worker(hot)
        await hot.execute("UPDATE jobs SET isolate = false")
        await take(hot, worker)
        await hot.execute("UPDATE workers SET lease_expires_at = now() - interval '1 second' WHERE state = 'active'")
        await rescue(hot, settle_time=NO_SETTLE)
    assert await hot.fetchval("SELECT state FROM jobs WHERE id = $1", job_id) == "dead_letter"
    assert JOBS_RESCUED.labels("work", "crashed").value == 2
    assert JOBS_RESCUED.labels("work", "dead_lettered").value == 1
    assert JOBS_FINISHED.labels("work", "dead_letter", "").value == 1
    assert sum(JOB_END_TO_END.labels("work", "").counts) == 1


async def test_a_breaker_that_a_person_moves_is_counted(hot: Connection) -> None:
    await trip(hot, "gateway", "maintenance")
    await reset(hot, "gateway")
    await reset(hot, "gateway")  # it was closed already
    assert BREAKER_TRANSITIONS.labels("gateway", "open").value == 1
    assert BREAKER_TRANSITIONS.labels("gateway", "closed").value == 1


async def test_a_job_remembers_when_it_was_runnable_first_until_somebody_retries_it_or_it_snoozes(
    hot: Connection,
) -> None:
    job_id = await one_job(hot)
    worker = await start_worker(hot, ttl=TTL)
    (first,) = await take(hot, worker)
    assert first.waited_in_all == first.waited
    retried = RunOutcome(State.SCHEDULED, "retry_scheduled", delay=60.0, charge=1, code="UNKNOWN")
    await settle(hot, worker.id, [(job_id, first.token, retried)])
    await hot.execute("UPDATE jobs SET state = 'queued', run_at = now()")

    (second,) = await take(hot, worker)

    assert second.waited_in_all > second.waited, "it was runnable for the first time before its retry was"
    await settle(hot, worker.id, [(job_id, second.token, RunOutcome(State.FAILED, "failed", code="UNKNOWN"))])
    await retry(hot, job_id)
    (third,) = await take(hot, worker)
    assert third.waited_in_all == third.waited, "a person's retry begins anew"
    await settle(hot, worker.id, [(job_id, third.token, RunOutcome(State.SCHEDULED, "snoozed", delay=60.0))])
    assert await hot.fetchval("SELECT runnable_since FROM jobs") is None
