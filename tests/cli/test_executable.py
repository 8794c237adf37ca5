"""`waybill` as a process of its own: what people type works, and says with its exit code how it went."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

import waybill as library
from support.clock import Clock
from support.command_line import EXECUTABLE, Ran, Waybill
from support.engine import one_job, running_job, some_jobs, start_worker, state
from support.otlp import collector
from support.patience import eventually
from support.workers import WorkerProcess
from waybill.console.local_address import publish
from waybill.db.database import Connection
from waybill_cli.group import commands
from waybill_engine import NewJob, State, enqueue
from waybill_engine.finish import RunOutcome, settle
from waybill_engine.kinds import SELFTEST


@pytest.fixture
def run(process: Waybill, database_url: str) -> Waybill:
    async def with_database(*arguments: object) -> Ran:
        return await process(*arguments, WAYBILL_DATABASE_URL=database_url)

    return with_database


async def test_help_names_every_command_and_the_exit_codes(process: Waybill) -> None:
    ran = await process("--help")
    assert ran.code == 0
    for name in commands():
        assert f"\n  {name} " in ran.out
    assert "Exit codes: 0 success" in ran.out


async def test_version(executable: Waybill) -> None:
    for spelled in ("version", "--version"):
        ran = await executable(spelled)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"Waybill {library.__version__} (Python 3.")


@pytest.mark.heavy
async def test_jobs_are_listed_shown_cancelled_retried_and_purged(run: Waybill, hot: Connection, clock: Clock) -> None:
    job_id = await one_job(hot, payload={"pages": 3})
    listed = await run("jobs", "ls")
    assert listed.code == 0
    assert [line.split()[0] for line in listed.lines] == ["ID", str(job_id)]
    shown = await run("jobs", "show", job_id)
    assert '{"pages": 3}' in shown.out
    assert (await run("jobs", "cancel", job_id)).code == 0
    assert await state(hot, job_id) is State.CANCELLED
    assert (await run("jobs", "retry", job_id)).out == f"{job_id} queued again\n"
    assert await state(hot, job_id) is State.QUEUED
    await run("jobs", "cancel", job_id)
    await clock.forward(31 * 86400)
    purged = await run("jobs", "purge", "--older-than", "30d", "--yes")
    assert purged.out.startswith("Deleted 1 job ")
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 0


@pytest.mark.heavy
async def test_a_job_can_be_enqueued(run: Waybill, hot: Connection) -> None:
    ran = await run("jobs", "enqueue", "selftest", "--payload", '{"steps": 1}')
    assert ran.code == 0
    assert str(await hot.fetchval("SELECT id FROM jobs WHERE kind = 'selftest'")) == ran.out.strip()


async def test_a_commands_spans_are_sent_before_it_ends(process: Waybill, database_url: str, hot: Connection) -> None:
    with collector() as received:
        traces = {"WAYBILL_DATABASE_URL": database_url, "WAYBILL_OTLP_ENDPOINT": received.endpoint}
        ran = await process("jobs", "enqueue", "selftest", "--payload", '{"steps": 1}', **traces)
        assert ran.code == 0, ran.err
        (enqueued,) = received.of_job(ran.out.strip())
    assert (enqueued.name, enqueued.service) == ("enqueue selftest", "waybill-cli")
    assert enqueued.trace_id in str(await hot.fetchval("SELECT traceparent FROM jobs"))


@pytest.mark.heavy
async def test_queues_are_counted_paused_and_resumed(run: Waybill, hot: Connection) -> None:
    await some_jobs(hot, 3)
    assert (await run("queue", "pause", "default", "--reason", "disk full")).code == 0
    stats = await run("queue", "stats")
    assert "paused just now: disk full" in stats.out or "s ago: disk full" in stats.out
    assert (await run("queue", "resume", "default")).out == "Queue default is open again.\n"


@pytest.mark.heavy
async def test_dead_letters_are_listed_and_retried(run: Waybill, hot: Connection) -> None:
    worker, lease = await running_job(hot)
    dead = RunOutcome(State.DEAD_LETTER, "dead_lettered", charge=3, code="GW_5XX", message="no luck")
    await settle(hot, worker.id, [(lease.id, lease.token, dead)])
    assert "GW_5XX: no luck" in (await run("dlq", "ls")).out
    assert (await run("dlq", "retry", "--all")).out == "Queued 1 job again.\n"
    assert await state(hot, lease.id) is State.QUEUED


@pytest.mark.heavy
async def test_workers_are_listed(run: Waybill, hot: Connection) -> None:
    worker = await start_worker(hot)
    assert worker.name in (await run("workers", "ls")).out


async def test_an_empty_database_is_refused_then_migrated(process: Waybill, empty_database_url: str) -> None:
    given = {"WAYBILL_DATABASE_URL": empty_database_url}
    refused = await process("jobs", "ls", **given)
    assert (refused.code, refused.out) == (2, "")
    assert "Run: waybill migrate" in refused.err
    assert (await process("migrate", "--check", **given)).code == 1
    migrated = await process("migrate", **given)
    assert migrated.code == 0
    assert migrated.out.startswith("Migrated the schema:")
    assert "empty -> engine_" in migrated.out
    assert (await process("migrate", "--check", **given)).code == 0
    assert (await process("jobs", "ls", **given)).code == 0


async def test_the_selftest_runs_on_a_real_worker(
    run: Waybill, hot: Connection, database_url: str, tmp_path: Path
) -> None:
    worker = WorkerProcess(database_url, tmp_path, "worker", {"WAYBILL_WORKER_HANDLERS": ""})
    try:
        await eventually(lambda: hot.fetchval("SELECT count(*) FROM workers"), what=worker.text)
        ran = await run("selftest", "--steps", 4, "--seconds-per-step", 0.5, "--wait", 30)
    finally:
        worker.clean_up()
    assert ran.code == 0, worker.text
    for told in ("enqueued", "started", "succeeded", "Passed: waited "):
        assert told in ran.out
    assert "running" in ran.err


async def test_a_running_job_is_cancelled_and_waited_for(
    run: Waybill, hot: Connection, database_url: str, tmp_path: Path
) -> None:
    worker = WorkerProcess(database_url, tmp_path, "worker", {"WAYBILL_WORKER_HANDLERS": ""})
    try:
        job = NewJob(SELFTEST, "acme", {"steps": 100, "seconds_per_step": 0.5})
        await enqueue(hot, job)
        await eventually(lambda: hot.fetchval("SELECT state = 'running' FROM jobs"), what=worker.text)
        ran = await run("jobs", "cancel", job.id, "--wait", "--timeout", "30s")
    finally:
        worker.clean_up()
    assert (ran.code, ran.out) == (0, f"{job.id} cancelled\n")


async def test_without_a_database_it_says_what_to_do(process: Waybill) -> None:
    ran = await process("jobs", "ls")
    assert (ran.code, ran.out) == (2, "")
    assert "`make up`" in ran.err
    assert "WAYBILL_DATABASE_URL" in ran.err


async def test_the_database_of_a_running_make_up_is_found(
    process: Waybill, database_url: str, hot: Connection, tmp_path: Path
) -> None:
    job_id = await one_job(hot)
    (tmp_path / ".waybill").mkdir()
    publish(tmp_path / ".waybill", database_url)
    assert str(job_id) in (await process("jobs", "ls")).out


async def test_a_make_up_that_was_killed_is_to_be_started_again(process: Waybill, tmp_path: Path) -> None:
    (tmp_path / ".waybill").mkdir()
    publish(tmp_path / ".waybill", "postgresql://waybill:hush@127.0.0.1:1/waybill")
    ran = await process("jobs", "ls")
    assert (ran.code, ran.out) == (3, "")
    assert "Start it again with `make up`" in ran.err


async def test_a_database_that_does_not_answer_has_an_exit_code_of_its_own(process: Waybill) -> None:
    ran = await process("queue", "stats", WAYBILL_DATABASE_URL="postgresql://someone:hush@127.0.0.1:1/x")
    assert (ran.code, ran.out) == (3, "")
    assert "127.0.0.1:1" in ran.err
    assert "hush" not in ran.err


async def test_a_wrong_configuration_is_told_line_by_line(process: Waybill, database_url: str) -> None:
    ran = await process("jobs", "ls", WAYBILL_DATABASE_URL="mysql://x", WAYBILL_LOG_LEVEL="loud")
    assert (ran.code, ran.out) == (2, "")
    assert {line.split(":")[0] for line in ran.err.splitlines()} == {"WAYBILL_DATABASE_URL", "WAYBILL_LOG_LEVEL"}


async def test_a_reader_that_goes_away_causes_no_traceback(hot: Connection, database_url: str) -> None:
    await some_jobs(hot, 2)
    nobody_reads, output = os.pipe()
    os.close(nobody_reads)
    process = await asyncio.create_subprocess_exec(
        EXECUTABLE,
        "jobs",
        "ls",
        env={**os.environ, "WAYBILL_DATABASE_URL": database_url},
        stdout=output,
        stderr=subprocess.PIPE,
    )
    os.close(output)
    _, err = await process.communicate()
    assert err == b""
