"""Several worker processes under one supervisor: it replaces the dead, and they stop together."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from support import handlers
from support import rude_handlers as rude
from support.patience import eventually
from support.rude_handlers import BOTH
from support.workers import SLOW, StartWorker, all_ended, counts, the_end, until_started
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_many


async def test_several_processes_work_under_one_supervisor_and_stop_together(
    connection: Connection, start_worker: StartWorker
) -> None:
    supervisor = start_worker(worker_handlers=BOTH, worker_processes=3)

    async def three() -> bool:
        return bool(await connection.fetchval("SELECT count(*) = 3 FROM workers WHERE state = 'active'"))

    await eventually(three)
    exits = await enqueue(connection, NewJob(rude.RUDE, "acme", {"way": "exit"}))
    assert (await the_end(connection, exits.id))["state"] == "dead_letter"
    assert supervisor.process.poll() is None, "a handler that exits with 2 does not stop it"
    children = psutil.Process(supervisor.pid).children()
    await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme") for _ in range(200)])
    os.kill(children[0].pid, 9)
    await eventually(lambda: all_ended(connection))

    supervisor.process.terminate()
    assert await supervisor.ended() == 0
    assert not any(child.is_running() for child in children)
    assert await counts(connection) == {"succeeded": 200, "dead_letter": 1}
    assert await connection.fetchval("SELECT count(*) FROM effects") == 200


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
    await enqueue(connection, NewJob(handlers.SPIN, "acme", {"pid_file": str(pid_file)}))

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
