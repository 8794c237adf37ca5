"""A job that snoozes comes back later, at no cost, and its history says why."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest

from support.engine import Connect, events, find_contradictions
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import GatewayUnavailable
from waybill.storage import LocalStorage
from waybill_engine import JobContext, JobKind, NewJob, RetryPolicy, Snooze, State, enqueue, handles, registry
from waybill_engine.breaker_control import reset, trip
from waybill_engine.control import cancel
from waybill_engine.testing import advance, make_due, run_inline

CALL = JobKind("snooze_call", retry=RetryPolicy(retries=1, base=1, jitter=0), dependencies=("bank",))


SLOW = JobKind("snooze_slow", time_limit=0.1, retry=RetryPolicy(retries=0))


@pytest.fixture
def started() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
def go_on() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture(autouse=True)
def _handlers(monkeypatch: pytest.MonkeyPatch, started: asyncio.Event, go_on: asyncio.Event) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    monkeypatch.setattr(registry, "_kinds", {})

    @handles(CALL)
    async def call(payload: dict[str, Any], job: JobContext) -> None:
        if job.claimed.token == payload.get("fails"):
            raise GatewayUnavailable("no luck")
        if payload.get("complete"):
            async with job.complete():
                pass
        if payload.get("waits"):
            started.set()
            await go_on.wait()
        if job.claimed.token <= payload.get("times", 1):
            raise Snooze(payload.get("seconds", 600), "the bank opens at nine")

    @handles(SLOW)
    async def slow(payload: dict[str, Any], job: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Snooze(600, "I am not done") from None


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.fixture
async def look(connect: Connect) -> Connection:
    return await connect()


async def test_it_waits_at_no_cost_and_the_history_says_why(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    outcome = await run_inline(db, storage, NewJob(CALL, "acme"))
    assert (outcome.state, outcome.attempts, outcome.code) == (State.SCHEDULED, 0, None)
    assert outcome.due_in is not None
    assert 0 < outcome.due_in <= 600
    (said,) = await look.fetch("SELECT event, detail FROM job_events")
    assert (said["event"], json.loads(said["detail"])["message"]) == ("snoozed", "the bank opens at nine")
    assert await advance(look, 600) == 1
    assert (await run_inline(db, storage, outcome.id)).state is State.SUCCEEDED
    assert await events(look, outcome.id) == ["snoozed", "succeeded"]
    assert await find_contradictions(look) == []


async def test_it_may_snooze_more_often_than_it_has_attempts(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    outcome = await run_inline(db, storage, NewJob(CALL, "acme", {"times": 20}))
    for _ in range(19):
        await make_due(look)
        outcome = await run_inline(db, storage, outcome.id)
        assert (outcome.state, outcome.attempts) == (State.SCHEDULED, 0)
    await make_due(look)
    assert (await run_inline(db, storage, outcome.id)).state is State.SUCCEEDED


async def test_the_attempts_and_the_error_before_it_are_kept(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    first = await run_inline(db, storage, NewJob(CALL, "acme", {"fails": 1, "times": 2}))
    assert first.attempts == 1
    await make_due(look)
    second = await run_inline(db, storage, first.id)
    assert (second.state, second.attempts, second.code) == (State.SCHEDULED, 1, "GW_5XX")
    assert await events(look, first.id) == ["retry_scheduled", "snoozed"]


async def test_even_a_snooze_of_no_time_keeps_no_worker_busy(db: Database, storage: LocalStorage) -> None:
    outcome = await run_inline(db, storage, NewJob(CALL, "acme", {"seconds": 0}))
    assert Snooze(0, "now").seconds == 1.0
    assert outcome.state is State.SCHEDULED


async def test_somebody_who_cancels_it_meanwhile_wins(
    db: Database, storage: LocalStorage, look: Connection, started: asyncio.Event, go_on: asyncio.Event
) -> None:
    job = await enqueue(look, NewJob(CALL, "acme", {"waits": True}))
    running = asyncio.create_task(run_inline(db, storage, job.id))
    await asyncio.wait_for(started.wait(), 30)
    await cancel(look, job.id)
    go_on.set()
    assert (await running).state is State.CANCELLED
    assert await events(look, job.id) == ["cancel_requested", "cancelled"]


async def test_a_handler_that_is_stopped_cannot_snooze_out_of_it(db: Database, storage: LocalStorage) -> None:
    outcome = await run_inline(db, storage, NewJob(SLOW, "acme"))
    assert (outcome.state, outcome.code) == (State.DEAD_LETTER, "TIMEOUT")


async def test_after_the_job_is_complete_it_means_nothing(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    outcome = await run_inline(db, storage, NewJob(CALL, "acme", {"complete": True}))
    assert outcome.state is State.SUCCEEDED
    assert await events(look, outcome.id) == ["succeeded"]


async def test_a_probe_that_snoozes_says_nothing_about_its_dependency(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    await trip(look, "bank", "maintenance", 0.001)
    outcome = await run_inline(db, storage, NewJob(CALL, "acme"))
    assert outcome.state is State.SCHEDULED
    breaker = await look.fetchrow("SELECT state, successes FROM breakers")
    assert breaker is not None
    assert (breaker["state"], breaker["successes"]) == ("half_open", 0)
    await reset(look, "bank")


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, 31 * 86400.0])
def test_a_wait_that_cannot_be_meant_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="0 seconds to 30 days"):
        Snooze(wrong, "why not")
