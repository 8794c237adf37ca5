"""The worker as a program: what it serves by default, and what it says when it cannot start."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from support import handlers
from support.patience import eventually
from support.workers import StartWorker, all_ended, the_end, the_worker, until_started, worker_starter
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_many
from waybill_engine.kinds import SELFTEST


async def test_a_worker_that_cannot_start_says_why(database_url: str, start_worker: StartWorker) -> None:
    worker = start_worker(worker_kinds="nonsense")
    assert await worker.ended() == 2
    assert "no handler for nonsense" in worker.text
    worker = start_worker(worker_concurrency=0, lease_ttl=1, heartbeat_interval=5)
    assert await worker.ended() == 2
    assert "WAYBILL_WORKER_CONCURRENCY" in worker.text
    assert "WAYBILL_HEARTBEAT_INTERVAL" in worker.text


async def test_by_default_the_engines_program_serves_the_selftest(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_handlers="", shared_imports=False)
    job = await enqueue(connection, NewJob(SELFTEST, "acme", {"steps": 1, "seconds_per_step": 0}))
    assert (await the_end(connection, job.id))["state"] == "succeeded"
    assert await connection.fetchval("SELECT kinds FROM workers") == ["selftest"]


async def test_handlers_that_are_named_replace_the_default_ones(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_handlers="support.handlers", shared_imports=False)
    await the_worker(connection)
    served = await connection.fetchval("SELECT kinds FROM workers")
    assert "noop" in served
    assert "selftest" not in served


@pytest.mark.parametrize("program", ["waybill_engine.worker", "waybill_worker"])
async def test_child_processes_run_the_program_that_started_them(
    connection: Connection, database_url: str, tmp_path: Path, gate: Path, program: str
) -> None:
    """The supervised ones, and the one for suspects of a crash."""
    with worker_starter(database_url, tmp_path, program=program) as start:
        supervisor = start(worker_processes=2)
        await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
        await until_started(gate, 1)
        async with connection.transaction():
            suspect = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
            await connection.execute("UPDATE jobs SET isolate = true WHERE id = $1", suspect.id)
        await until_started(gate, 2)
        commands = [child.cmdline() for child in psutil.Process(supervisor.pid).children(recursive=True)]
        assert len([command for command in commands if command[1:3] == ["-m", program]]) == len(commands)
        assert any("--isolating" in command for command in commands)
        (gate / "open").touch()
        await eventually(lambda: all_ended(connection))


async def test_a_worker_needs_at_most_six_connections_however_busy_it_is(
    connection: Connection, start_worker: StartWorker
) -> None:
    # One worker of the fleet has one more, 'waybill-worker relay'.
    used = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'waybill-worker'"
    start_worker(worker_concurrency=50, poll_interval=0.2)
    await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme") for _ in range(400)])
    await enqueue_many(connection, [NewJob(handlers.FAIL, "acme", {"times": 1}) for _ in range(200)])
    await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(2000)])
    seen: set[int] = set()

    async def ended() -> bool:
        seen.add(await connection.fetchval(used))
        return await all_ended(connection)

    await eventually(ended, within=120)
    assert 4 <= max(seen) <= 6
