"""The life of a worker's lease, seen from its jobs: lost, taken over, handed back, never forgotten."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import psutil
import pytest

from support import handlers
from support import rude_handlers as rude
from support.engine import take_as
from support.server import embedded
from support.waiting import eventually
from support.workers import all_ended, counts, started_runs
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill_cli.local.postgres import EmbeddedPostgres
from waybill_engine import JobKind, NewJob, enqueue, enqueue_many
from waybill_engine.control import pause
from waybill_engine.rescue import rescue_worker
from worker.conftest import StartWorker
from worker.test_holding import BOTH, held_ahead

SLOW = {"lease_ttl": 60, "heartbeat_interval": 20}
"""Nothing that a test sees within its time can come from a lease that ran out."""


async def until_started(gate: Path, runs: int) -> None:
    async def started() -> bool:
        return len(started_runs(gate)) >= runs

    await eventually(started)


async def the_worker(connection: Connection) -> uuid.UUID:
    async def one() -> uuid.UUID | None:
        found: uuid.UUID | None = await connection.fetchval("SELECT id FROM workers WHERE state = 'active'")
        return found

    found = await eventually(one)
    assert found is not None
    return found


async def beat(connection: Connection, worker: uuid.UUID) -> None:
    """Have the worker renew its lease now, and wait until it has."""
    seen = "SELECT last_seen_at FROM workers WHERE id = $1"
    before = await connection.fetchval(seen, worker)
    await connection.execute("SELECT pg_notify('waybill_control', $1)", str(worker))

    async def beaten() -> bool:
        return bool(await connection.fetchval(seen, worker) > before)

    await eventually(beaten)


async def test_a_worker_declared_gone_drops_what_it_runs_and_goes_on_under_a_new_id(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    worker = start_worker(worker_concurrency=1, **SLOW)
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    old = await the_worker(connection)
    await pause(connection, "default")  # its job stays where the rescue puts it
    await rescue_worker(connection, old)
    await connection.execute("SELECT pg_notify('waybill_control', $1)", str(old))

    async def dropped() -> bool:
        return "lease_lost" in worker.text

    await eventually(dropped)  # from this heartbeat, not from the next
    after = await enqueue(connection, NewJob(JobKind("noop", queue="other"), "acme"))
    await connection.execute("UPDATE jobs SET queue = 'default' WHERE id = $1", after.id)
    await connection.execute("DELETE FROM queues")
    await connection.execute("SELECT pg_notify('waybill_jobs', 'default')")

    async def done() -> bool:
        return bool(await connection.fetchval("SELECT state = 'succeeded' FROM jobs WHERE id = $1", after.id))

    await eventually(done)
    new = await connection.fetchval("SELECT worker_id FROM job_events WHERE job_id = $1", after.id)
    assert new != old
    assert await connection.fetchval("SELECT pid FROM workers WHERE id = $1", new) == worker.pid


async def test_a_run_that_is_not_ours_any_more_is_stopped_at_the_next_heartbeat(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    worker = start_worker(**SLOW)
    job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    await connection.execute(
        "UPDATE jobs SET state = 'cancelled', lease_owner = NULL, finished_at = now() WHERE id = $1", job.id
    )
    await beat(connection, await the_worker(connection))

    async def dropped() -> bool:
        return "lease_lost" in worker.text

    await eventually(dropped)


async def test_a_claim_whose_answer_was_lost_is_given_back_when_it_was_seen_twice(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    start_worker(worker_concurrency=1, **SLOW)
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    worker = await the_worker(connection)
    job = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    assert await take_as(connection, worker, ["default"], ["noop"], 1)  # as it would have, had it heard the answer
    state = "SELECT state FROM jobs WHERE id = $1"

    await beat(connection, worker)
    await beat(connection, worker)  # the first has been acted upon when the second is answered

    async def released() -> bool:
        return bool(await connection.fetchval(state, job.id) == "queued")

    await eventually(released)
    events = await connection.fetch("SELECT event, at FROM job_events WHERE job_id = $1", job.id)
    assert [row["event"] for row in events] == ["released"]


async def test_a_claim_under_way_is_not_given_back(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    start_worker(worker_concurrency=1, **SLOW)
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    worker = await the_worker(connection)
    await beat(connection, worker)  # the one its listener asks for when it starts is over
    job = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    assert await take_as(connection, worker, ["default"], ["noop"], 1)

    await beat(connection, worker)
    await asyncio.sleep(0.3)  # nothing may happen, so there is nothing to wait for
    assert await connection.fetchval("SELECT count(*) FROM job_events WHERE job_id = $1", job.id) == 0


async def test_what_waits_for_a_slot_is_given_back_at_once_at_shutdown(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    behind = await held_ahead(connection, start_worker, gate)
    pid = await connection.fetchval("SELECT pid FROM workers WHERE state = 'active'")
    psutil.Process(pid).terminate()

    async def given_back() -> bool:
        return await counts(connection) == {"succeeded": 3000, "running": 2, "queued": len(behind)}

    await eventually(given_back, within=4)  # the grace period is 5 s, and its sign-off would give back the rest


async def test_a_new_worker_holds_no_more_than_it_has_slots_for(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    await enqueue_many(connection, [NewJob(handlers.GATED, "acme", {"gate": str(gate)}) for _ in range(50)])
    start_worker(worker_concurrency=3)
    await until_started(gate, 3)
    await beat(connection, await the_worker(connection))
    assert await counts(connection) == {"running": 3, "queued": 47}


@asynccontextmanager
async def an_outage(server: EmbeddedPostgres) -> AsyncIterator[None]:
    server.stop("fast")
    yield
    server.start()


@pytest.mark.parametrize(("kind", "end"), [(rude.QUIET, "succeeded"), (rude.LOCKED, "failed")])
async def test_an_end_that_falls_into_an_outage_is_written_after_it(
    start_worker: StartWorker, gate: Path, kind: JobKind, end: str
) -> None:
    with embedded() as server:
        url = server.create_database("waybill")
        await upgrade(url)
        worker = start_worker(url, worker_handlers=BOTH, lease_ttl=20, heartbeat_interval=0.5)
        connection = await asyncpg.connect(url)
        await enqueue_many(connection, [NewJob(kind, "acme", {"gate": str(gate)}) for _ in range(3)])
        await until_started(gate, 3)
        await connection.close()
        async with an_outage(server):
            (gate / "open").touch()

            async def lost() -> bool:
                return "database_lost" in worker.text

            await eventually(lost)
        connection = await asyncpg.connect(url)
        await eventually(lambda: all_ended(connection))
        rows = await connection.fetch("SELECT state, lease_token FROM jobs")
        await connection.close()
        assert {tuple(row) for row in rows} == {(end, 1)}


async def test_a_listener_that_lost_its_connection_listens_again(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(poll_interval=60)
    await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    await eventually(lambda: all_ended(connection))
    ears = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%'"
    deaf = await connection.fetchval(ears)
    await connection.execute("SELECT pg_terminate_backend($1)", deaf)

    async def listens() -> bool:
        return await connection.fetchval(ears) not in (None, deaf)

    await eventually(listens)
    await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    await eventually(lambda: all_ended(connection))


async def test_a_suspect_that_dies_alone_is_judged_at_once(connection: Connection, start_worker: StartWorker) -> None:
    job = await enqueue(connection, NewJob(handlers.CRASH, "acme"))
    await connection.execute("UPDATE jobs SET isolate = true")
    start_worker(**SLOW)
    await eventually(lambda: all_ended(connection))
    row = await connection.fetchrow("SELECT state, error_code, crashes FROM jobs WHERE id = $1", job.id)
    assert row is not None
    assert tuple(row) == ("dead_letter", "WORKER_CRASHED", 3)


async def test_a_suspect_is_released_when_its_worker_stops(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await connection.execute("UPDATE jobs SET isolate = true")
    worker = start_worker(shutdown_grace=0, **SLOW)
    await until_started(gate, 1)
    worker.signal(signal.SIGTERM)
    assert await worker.ended(15) == 0
    row = await connection.fetchrow("SELECT state, isolate, attempts, crashes FROM jobs WHERE id = $1", job.id)
    assert row is not None
    assert tuple(row) == ("queued", True, 0, 0)


async def test_a_supervisor_replaces_a_dead_process_and_its_jobs_do_not_wait_for_the_lease(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    start_worker(worker_processes=2, worker_concurrency=1, **SLOW)
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    pid = await connection.fetchval("SELECT pid FROM workers JOIN jobs ON lease_owner = workers.id")
    psutil.Process(pid).kill()
    await until_started(gate, 2)  # within its time: far less than the lease


async def test_processes_end_with_the_one_that_started_them(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    supervisor = start_worker(worker_processes=2)
    pid_file = tmp_path / "pid"
    await enqueue(connection, NewJob(handlers.HANG_BLOCKING, "acme", {"pid_file": str(pid_file)}))

    async def busy() -> bool:
        return pid_file.exists() and bool(pid_file.read_text())

    await eventually(busy)
    children = psutil.Process(supervisor.pid).children()
    family = [*children, psutil.Process(int(pid_file.read_text()))]
    for child in children:  # one of them the pool's parent: killed, so that it cannot clean up
        child.kill()
    supervisor.kill()

    async def gone() -> bool:
        return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in family)

    await eventually(gone)


async def test_children_of_a_killed_supervisor_stop(connection: Connection, start_worker: StartWorker) -> None:
    supervisor = start_worker(worker_processes=2)

    async def two() -> bool:
        return bool(await connection.fetchval("SELECT count(*) = 2 FROM workers WHERE state = 'active'"))

    await eventually(two)
    supervisor.kill()

    async def stopped() -> bool:
        return bool(await connection.fetchval("SELECT count(*) = 2 FROM workers WHERE state = 'stopped'"))

    await eventually(stopped)


async def test_progress_can_be_seen_while_the_job_runs(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    start_worker(worker_handlers=BOTH)
    job = await enqueue(connection, NewJob(rude.QUIET, "acme", {"gate": str(gate)}))

    async def seen() -> bool:
        row = await connection.fetchrow("SELECT progress, progress_message FROM jobs WHERE id = $1", job.id)
        return row is not None and tuple(row) == (0.25, "a quarter")

    await eventually(seen)
