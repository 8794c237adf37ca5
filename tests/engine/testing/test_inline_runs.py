"""A job that runs inline ends as it would on a worker."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from support.engine import Connect, count, events, find_contradictions, row
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Conflict, DocumentFault, Forbidden, GatewayUnavailable, NotFound, RateLimited
from waybill.ids import new_id
from waybill.storage import LocalStorage
from waybill_engine import (
    JobContext,
    JobKind,
    NewJob,
    RetryPolicy,
    State,
    Unique,
    enqueue,
    enqueue_family,
    handles,
    queries,
    registry,
)
from waybill_engine.breaker_control import trip
from waybill_engine.caps import set_cap
from waybill_engine.control import cancel, pause
from waybill_engine.rescue import rescue_worker
from waybill_engine.testing import make_due, run_inline, run_waiting

ADD = JobKind("inline_add", retry=RetryPolicy(retries=1, base=10, jitter=0), dependencies=("adder",))
HANG = JobKind("inline_hang", time_limit=0.2, retry=RetryPolicy(retries=0))


def total(numbers: list[int]) -> int:
    return sum(numbers)


@pytest.fixture(autouse=True)
def _handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers that only these tests know."""
    monkeypatch.setattr(registry, "_handlers", {})
    monkeypatch.setattr(registry, "_kinds", {})

    @handles(ADD)
    async def add(payload: dict[str, Any], job: JobContext) -> None:
        if payload.get("fault"):
            raise DocumentFault("There is nothing to add up.")
        if payload.get("broken"):
            raise RuntimeError("no luck")
        if payload.get("down"):
            raise GatewayUnavailable("no luck", dependency="adder")
        if payload.get("wait"):
            raise RateLimited(retry_after=30)
        if payload.get("stop"):
            await asyncio.Event().wait()
        result = await job.run_blocking(total, payload["numbers"])
        job.progress(0.5, "half way")
        stored = await job.store("sum.txt", str(result).encode())
        async with job.complete() as session:
            await job.publish(session, "sum.txt", stored, "text/plain")
            if payload.get("next"):
                await enqueue(session, NewJob(ADD, job.tenant, {"numbers": [result]}))

    @handles(HANG)
    async def hang(payload: dict[str, Any], job: JobContext) -> None:
        await asyncio.Event().wait()


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.fixture
async def look(connect: Connect) -> Connection:
    return await connect()


def new(**payload: Any) -> NewJob:
    return NewJob(ADD, "acme", {"numbers": [1, 2, 3], **payload})


async def test_a_job_runs_and_leaves_what_a_worker_would_leave(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    outcome = await run_inline(db, storage, new())
    assert (outcome.state, outcome.attempts, outcome.error, outcome.due_in) == (State.SUCCEEDED, 0, None, None)
    async with db.transaction() as session:
        (artefact,) = await queries.artefacts(session, outcome.id)
    assert await storage.get(artefact.storage_key) == b"6"
    assert await events(look, outcome.id) == ["succeeded"]
    assert [one["state"] for one in await look.fetch("SELECT state FROM workers")] == ["stopped"]
    assert await find_contradictions(look) == []


async def test_an_error_that_may_pass_is_charged_and_tried_again_later(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    first = await run_inline(db, storage, new(broken=True))
    assert (first.state, first.attempts, first.code) == (State.SCHEDULED, 1, "UNKNOWN")
    assert isinstance(first.error, RuntimeError)
    assert first.due_in is not None
    assert 0 < first.due_in <= 10
    with pytest.raises(Conflict, match=r"cannot run now\. It is scheduled until .* It failed once"):
        await run_inline(db, storage, first.id)
    await make_due(look, first.id)
    second = await run_inline(db, storage, first.id)
    assert (second.state, second.attempts) == (State.DEAD_LETTER, 2)
    assert await events(look, first.id) == ["retry_scheduled", "dead_lettered"]


async def test_permanent_errors_and_waits_are_judged_as_on_a_worker(db: Database, storage: LocalStorage) -> None:
    fault = await run_inline(db, storage, new(fault=True))
    assert (fault.state, fault.code) == (State.FAILED, "PARSE_ERROR")
    wait = await run_inline(db, storage, new(wait=True))
    assert (wait.state, wait.attempts, wait.code) == (State.SCHEDULED, 0, "RATE_LIMITED")
    assert wait.due_in is not None
    assert 0 < wait.due_in <= 60


async def test_the_time_limit_holds(db: Database, storage: LocalStorage) -> None:
    outcome = await run_inline(db, storage, NewJob(HANG, "acme"))
    assert (outcome.state, outcome.code) == (State.DEAD_LETTER, "TIMEOUT")
    assert isinstance(outcome.error, asyncio.CancelledError)


async def test_failures_of_a_dependency_are_reported_to_its_breaker(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    await run_inline(db, storage, new(down=True))
    counted = await look.fetch("SELECT name, calls, failures FROM breaker_counts")
    assert [tuple(one) for one in counted] == [("adder", 1, 1)]


async def test_a_run_that_was_taken_over_changes_nothing(db: Database, storage: LocalStorage, look: Connection) -> None:
    job = await enqueue(look, new(stop=True))
    running = asyncio.create_task(run_inline(db, storage, job.id))
    async with asyncio.timeout(30):
        while (owner := (await row(look, job.id))["lease_owner"]) is None:
            await asyncio.sleep(0.01)
    await rescue_worker(look, owner)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    after = await row(look, job.id)
    assert (after["state"], after["crashes"]) == ("queued", 1)


async def test_a_test_that_is_interrupted_gives_its_job_back(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    job = await enqueue(look, new(stop=True))
    running = asyncio.create_task(run_inline(db, storage, job.id))
    async with asyncio.timeout(30):
        while (await row(look, job.id))["state"] != "running":
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (await row(look, job.id))["state"] == "queued"
    assert await find_contradictions(look) == []


async def test_exactly_the_named_job_runs_however_many_wait(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    first, second, third = [await enqueue(look, new()) for _ in range(3)]
    assert (await run_inline(db, storage, second.id)).id == second.id
    assert [(await row(look, one.id))["state"] for one in (first, second, third)] == ["queued", "succeeded", "queued"]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("paused", "queue default has been paused"),
        ("tripped", "adder"),
        ("capped", "At most 0 jobs of kind inline_add"),
        ("ended", "cancelled"),
        ("locked", "cannot run now"),
    ],
)
async def test_a_job_that_may_not_run_is_not_run_and_the_reason_is_told(
    db: Database, storage: LocalStorage, connect: Connect, reason: str, said: str
) -> None:
    look, other = await connect(), await connect()
    job, next_one = [await enqueue(look, new()) for _ in range(2)]
    transaction = other.transaction()
    await transaction.start()
    match reason:
        case "paused":
            await pause(look, "default")
        case "tripped":
            await trip(look, "adder", "maintenance")
        case "capped":
            await set_cap(look, 0, kind=ADD.name)
        case "ended":
            await cancel(look, job.id)
        case "locked":
            await other.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", job.id)
    with pytest.raises(Conflict, match=f"Job {job.id} cannot run now") as refused:
        await run_inline(db, storage, job.id)
    assert said in refused.value.message
    await transaction.rollback()
    assert (await row(look, next_one.id))["state"] == "queued"
    assert await find_contradictions(look) == []


async def test_what_cannot_be_run_at_all_is_refused_before_anything_is_enqueued(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    with pytest.raises(LookupError, match="no handler for unheard_of; there are handlers for: inline_add, inline_hang"):
        await run_inline(db, storage, NewJob(JobKind("unheard_of"), "acme"))
    with pytest.raises(Forbidden):
        await run_inline(db, storage, NewJob(ADD, "acme", priority=1))
    with pytest.raises(NotFound):
        await run_inline(db, storage, new_id())
    assert await count(look) == 0


async def test_a_unique_key_that_is_taken_is_told(db: Database, storage: LocalStorage, look: Connection) -> None:
    job = await enqueue(look, NewJob(ADD, "acme", unique=Unique("k")))
    with pytest.raises(Conflict, match=str(job.id)):
        await run_inline(db, storage, NewJob(ADD, "acme", unique=Unique("k")))


async def test_a_suspect_of_a_crash_runs_too(db: Database, storage: LocalStorage, look: Connection) -> None:
    job = await enqueue(look, new())
    await look.execute("UPDATE jobs SET isolate = true")
    assert (await run_inline(db, storage, job.id)).state is State.SUCCEEDED


async def test_everything_that_waits_runs_with_what_it_enqueues_and_families_in_order(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    family = await enqueue_family(look, new(), [new(next=True), new(fault=True)])
    later = await enqueue(look, NewJob(ADD, "acme", {"numbers": [1]}, delay=60))
    outcomes = await run_waiting(db, storage)
    children = [child.id for child in family.children]
    assert [outcome.id for outcome in outcomes][-1] != later.id
    ran: dict[uuid.UUID, State] = {outcome.id: outcome.state for outcome in outcomes}
    assert len(ran) == 4
    assert ran[family.parent.id] is State.SUCCEEDED
    assert [ran[child] for child in children] == [State.SUCCEEDED, State.FAILED]
    assert list(ran).index(family.parent.id) > max(list(ran).index(child) for child in children)
    assert (await row(look, later.id))["state"] == "scheduled"


async def test_jobs_that_enqueue_each_other_for_ever_are_noticed(
    db: Database, storage: LocalStorage, look: Connection
) -> None:
    for _ in range(3):
        await enqueue(look, new())
    with pytest.raises(AssertionError, match="2 jobs have run"):
        await run_waiting(db, storage, at_most=2)
