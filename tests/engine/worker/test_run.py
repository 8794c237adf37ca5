"""A run ends in one of the ways it can end, within its limits, whatever its handler does."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support import handlers
from support import rude_handlers as rude
from support.engine import events
from support.patience import eventually
from support.rude_handlers import BOTH
from support.workers import StartWorker, counts, started_runs, the_end
from waybill.db.database import Connection
from waybill_engine import JobKind, NewJob, enqueue
from waybill_engine.control import cancel


async def test_what_a_handler_writes_enqueues_and_completes_commits_together(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker()
    await enqueue(connection, NewJob(handlers.CHAIN, "acme", {"left": 20}))

    async def complete() -> bool:
        return await counts(connection) == {"succeeded": 21}

    await eventually(complete)
    assert await connection.fetchval("SELECT count(DISTINCT note) FROM effects") == 21
    assert await connection.fetchval("SELECT count(*) FROM effects") == 21


async def test_a_failing_job_is_retried_and_charged_until_it_works(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker()
    job = await enqueue(connection, NewJob(handlers.FAIL, "acme", {"times": 2}))

    row = await the_end(connection, job.id)

    assert (row["state"], row["attempts"], row["error_code"]) == ("succeeded", 2, None)
    assert await events(connection, job.id) == ["retry_scheduled", "retry_scheduled", "succeeded"]


async def test_retries_are_bounded(connection: Connection, start_worker: StartWorker) -> None:
    start_worker()
    job = await enqueue(connection, NewJob(handlers.FAIL, "acme", {"times": 99}))

    row = await the_end(connection, job.id)

    assert (row["state"], row["attempts"], row["error_code"]) == ("dead_letter", 4, "GW_5XX")


async def test_a_permanent_error_is_never_retried(connection: Connection, start_worker: StartWorker) -> None:
    start_worker()
    job = await enqueue(connection, NewJob(handlers.FAIL, "acme", {"permanent": True}))

    row = await the_end(connection, job.id)

    assert (row["state"], row["attempts"], row["lease_token"]) == ("failed", 1, 1)
    assert (row["error_code"], row["error_message"]) == ("PARSE_ERROR", "page 3 is missing")


async def test_a_handler_that_exits_ends_its_run_and_not_its_worker(
    connection: Connection, start_worker: StartWorker
) -> None:
    worker = start_worker()
    job = await enqueue(connection, NewJob(handlers.EXIT, "acme"))

    row = await the_end(connection, job.id)

    assert (row["state"], row["error_code"], row["crashes"]) == ("dead_letter", "UNKNOWN", 0)
    assert worker.process.poll() is None


async def test_what_was_completed_stays_completed_whatever_the_handler_does_afterwards(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker()
    job = await enqueue(connection, NewJob(handlers.COMPLETE_AND_RAISE, "acme"))

    row = await the_end(connection, job.id)
    after = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    await the_end(connection, after.id)

    assert (row["state"], row["attempts"]) == ("succeeded", 0)
    assert await events(connection, job.id) == ["succeeded"]
    assert await connection.fetchval("SELECT count(*) FROM effects") == 1


async def test_a_wait_the_other_side_asked_for_costs_no_attempt(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker()
    job = await enqueue(connection, NewJob(handlers.FAIL, "acme", {"retry_after": 0.2}))

    row = await the_end(connection, job.id)

    assert (row["state"], row["attempts"], row["lease_token"]) == ("succeeded", 0, 2)
    assert await events(connection, job.id) == ["postponed", "succeeded"]


@pytest.mark.parametrize("kind", [handlers.HANG, handlers.STUBBORN])
async def test_a_run_past_its_time_limit_is_stopped_and_charged(
    connection: Connection, start_worker: StartWorker, kind: JobKind
) -> None:
    start_worker()
    job = await enqueue(connection, NewJob(kind, "acme"))

    row = await the_end(connection, job.id)

    assert (row["state"], row["attempts"], row["error_code"]) == ("dead_letter", 1, "TIMEOUT")


async def test_a_running_job_can_be_cancelled(connection: Connection, start_worker: StartWorker, gate: Path) -> None:
    start_worker(heartbeat_interval=20, lease_ttl=60)  # it is told, it does not find out by the way
    job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))

    async def started() -> bool:
        return bool(started_runs(gate))

    await eventually(started)
    await cancel(connection, job.id)

    row = await the_end(connection, job.id)
    assert (row["state"], row["attempts"], row["error_code"]) == ("cancelled", 0, "CANCELLED")
    assert await events(connection, job.id) == ["cancel_requested", "cancelled"]
    assert await connection.fetchval("SELECT count(*) FROM effects") == 0


async def test_logs_of_a_job_carry_its_id(connection: Connection, start_worker: StartWorker) -> None:
    worker = start_worker(log_format="json")
    job = await enqueue(connection, NewJob(handlers.FAIL, "acme", {"permanent": True}))
    await the_end(connection, job.id)

    async def logged() -> bool:
        return any("job_failed" in line and str(job.id) in line for line in worker.text.splitlines())

    await eventually(logged)


async def test_a_handlers_mistake_costs_its_own_job_an_attempt_and_its_worker_nothing(
    connection: Connection, start_worker: StartWorker
) -> None:
    worker = start_worker(worker_handlers=BOTH)
    for way in (
        *("progress_text", "retry_after_nan", "retry_after_text"),
        *("exit", "panic", "exit_in_pool", "panic_in_pool"),
    ):
        job = await enqueue(connection, NewJob(rude.RUDE, "acme", {"way": way}))
        row = await the_end(connection, job.id)
        assert (row["state"], row["crashes"]) == ("dead_letter", 0), way
        after = await enqueue(connection, NewJob(handlers.EFFECT, "acme"))
        assert (await the_end(connection, after.id))["state"] == "succeeded", way
        assert worker.process.poll() is None, way
    after = await enqueue(connection, NewJob(handlers.EFFECT, "acme", {"seconds": 1}))
    assert (await the_end(connection, after.id))["state"] == "succeeded"
    assert worker.process.poll() is None


@pytest.mark.parametrize("why", ["cancel", "shutdown"])
async def test_a_handler_that_swallows_its_cancellation_did_not_succeed(
    connection: Connection, start_worker: StartWorker, gate: Path, why: str
) -> None:
    worker = start_worker(worker_handlers=BOTH, shutdown_grace=0)
    job = await enqueue(connection, NewJob(rude.SWALLOW, "acme", {"gate": str(gate)}))

    async def started() -> bool:
        return bool(started_runs(gate))

    await eventually(started)
    if why == "cancel":
        await cancel(connection, job.id)
        assert (await the_end(connection, job.id))["state"] == "cancelled"
    else:
        worker.signal(signal.SIGTERM)
        assert await worker.ended() == 0
        assert await connection.fetchval("SELECT state FROM jobs WHERE id = $1", job.id) == "queued"


async def test_what_a_handler_does_after_its_completion_is_not_cut_off(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker(worker_handlers=BOTH)
    await enqueue(connection, NewJob(rude.AFTERWARDS, "acme", {"file": str(tmp_path / "after")}))

    async def after() -> bool:
        return (tmp_path / "after").exists()

    await eventually(after)
    assert "lease_lost" not in worker.text


async def test_an_error_in_a_task_group_is_judged_by_what_it_is(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_handlers=BOTH)
    job = await enqueue(connection, NewJob(rude.TOGETHER, "acme"))
    row = await the_end(connection, job.id)
    assert (row["state"], row["error_code"], row["attempts"]) == ("failed", "PARSE_ERROR", 1)


@pytest.mark.heavy
async def test_a_transaction_the_server_ended_for_idleness_is_the_handlers_fault(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_handlers=BOTH)
    job = await enqueue(connection, NewJob(rude.IDLE, "acme"))
    row = await the_end(connection, job.id, within=60)
    assert (row["state"], row["attempts"]) == ("dead_letter", 2)
