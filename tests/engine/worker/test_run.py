"""A worker runs jobs: once each, within limits, and tells the truth about how they ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from support import handlers
from support.waiting import eventually
from support.workers import all_ended, counts, started_runs
from waybill.db.database import Connection
from waybill_engine import JobKind, NewJob, enqueue, enqueue_many
from waybill_engine.control import cancel, pause, resume
from worker.conftest import StartWorker


async def the_end(connection: Connection, job_id: object) -> dict[str, Any]:
    """The job's row, once it has ended."""

    async def ended() -> dict[str, Any] | None:
        row = await connection.fetchrow(
            "SELECT * FROM jobs WHERE id = $1 AND state IN ('succeeded', 'failed', 'dead_letter', 'cancelled')", job_id
        )
        return dict(row) if row else None

    found = await eventually(ended)
    assert found is not None
    return found


async def events(connection: Connection, job_id: object) -> list[str]:
    rows = await connection.fetch("SELECT event FROM job_events WHERE job_id = $1 ORDER BY id", job_id)
    return [row["event"] for row in rows]


async def test_ten_workers_run_a_hundred_jobs_once_each(connection: Connection, start_worker: StartWorker) -> None:
    for _ in range(10):
        start_worker(worker_concurrency=2)
    await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme") for _ in range(100)])

    await eventually(lambda: all_ended(connection), within=60)

    assert await counts(connection) == {"succeeded": 100}
    assert await connection.fetchval("SELECT count(*) FROM effects") == 100
    assert await connection.fetchval("SELECT count(DISTINCT job_id) FROM effects") == 100
    assert await connection.fetchval("SELECT max(lease_token) FROM jobs") == 1


async def test_an_idle_worker_is_woken_by_the_commit(connection: Connection, start_worker: StartWorker) -> None:
    start_worker(poll_interval=60)
    first = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    await the_end(connection, first.id)  # it has started and is listening

    second = await enqueue(connection, NewJob(handlers.NOOP, "acme"))

    await eventually(lambda: all_ended(connection))
    assert (await the_end(connection, second.id))["state"] == "succeeded"


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


async def test_blocking_work_past_its_time_limit_is_killed(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker()
    pid_file = tmp_path / "pid"
    job = await enqueue(connection, NewJob(handlers.HANG_BLOCKING, "acme", {"pid_file": str(pid_file)}))

    row = await the_end(connection, job.id)

    assert (row["state"], row["error_code"]) == ("dead_letter", "TIMEOUT")

    async def dead() -> bool:
        return not psutil.pid_exists(int(pid_file.read_text()))

    await eventually(dead)


async def test_work_that_blocks_a_cpu_for_three_lease_lengths_keeps_its_lease(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(lease_ttl=1, heartbeat_interval=0.25)
    start_worker(lease_ttl=1, heartbeat_interval=0.25)  # would rescue it
    job = await enqueue(connection, NewJob(handlers.BURN, "acme", {"seconds": 3}))

    row = await the_end(connection, job.id)

    assert (row["state"], row["lease_token"], row["crashes"]) == ("succeeded", 1, 0)


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


async def test_a_paused_queue_starts_nothing_until_it_is_resumed(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(poll_interval=0.1)
    await pause(connection, "default")
    held = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    other = JobKind("noop", queue="other")
    start_worker(worker_queues="other,default", poll_interval=0.1)
    passed = await enqueue(connection, NewJob(other, "acme"))

    await the_end(connection, passed.id)  # somebody claimed, and did not claim the held one
    assert await connection.fetchval("SELECT state FROM jobs WHERE id = $1", held.id) == "queued"

    await resume(connection, "default")
    assert (await the_end(connection, held.id))["state"] == "succeeded"


async def test_a_kind_the_old_worker_does_not_know_stays_for_the_new_one(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_kinds="effect", poll_interval=0.1)
    new_kind = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    known = await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme") for _ in range(20)])

    for job in known:
        await the_end(connection, job.id)
    assert await connection.fetchval("SELECT state FROM jobs WHERE id = $1", new_kind.id) == "queued"

    start_worker(worker_kinds="effect,noop")
    assert (await the_end(connection, new_kind.id))["state"] == "succeeded"


async def test_scheduled_jobs_start_when_they_are_due(connection: Connection, start_worker: StartWorker) -> None:
    start_worker(poll_interval=60)
    first = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    await the_end(connection, first.id)

    job = await enqueue(connection, NewJob(handlers.NOOP, "acme", delay=0.5))
    row = await the_end(connection, job.id)

    assert row["started_at"] >= row["run_at"]


async def test_several_processes_work_under_one_supervisor_and_stop_together(
    connection: Connection, start_worker: StartWorker
) -> None:
    supervisor = start_worker(worker_processes=3)

    async def three() -> bool:
        return bool(await connection.fetchval("SELECT count(*) = 3 FROM workers WHERE state = 'active'"))

    await eventually(three)
    children = psutil.Process(supervisor.pid).children()
    await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme") for _ in range(200)])
    os.kill(children[0].pid, 9)
    await eventually(lambda: all_ended(connection))

    supervisor.process.terminate()
    assert await supervisor.ended() == 0
    assert not any(child.is_running() for child in children)
    assert await counts(connection) == {"succeeded": 200}
    assert await connection.fetchval("SELECT count(*) FROM effects") == 200


async def test_a_worker_that_cannot_start_says_why(database_url: str, start_worker: StartWorker) -> None:
    worker = start_worker(worker_kinds="nonsense")
    assert await worker.ended() == 2
    assert "no handler for nonsense" in worker.text
    worker = start_worker(worker_concurrency=0, lease_ttl=1, heartbeat_interval=5)
    assert await worker.ended() == 2
    assert "WAYBILL_WORKER_CONCURRENCY" in worker.text
    assert "WAYBILL_HEARTBEAT_INTERVAL" in worker.text


async def test_logs_of_a_job_carry_its_id(connection: Connection, start_worker: StartWorker) -> None:
    worker = start_worker(log_format="json")
    job = await enqueue(connection, NewJob(handlers.FAIL, "acme", {"permanent": True}))
    await the_end(connection, job.id)

    async def logged() -> bool:
        return any("job_failed" in line and str(job.id) in line for line in worker.text.splitlines())

    await eventually(logged)
