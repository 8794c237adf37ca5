"""Real worker processes, which tests can freeze and kill. They are always cleaned up."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from support.child_processes import NO_METRICS, kill_with_children
from support.handlers import EFFECT
from support.patience import eventually
from support.zygote import Program
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue_many

TESTS = Path(__file__).parent.parent

# Short leases keep tests of them short, and are still far longer than the pauses of a busy machine.
QUICK = {
    "WAYBILL_LEASE_TTL": "2",
    "WAYBILL_HEARTBEAT_INTERVAL": "0.5",
    "WAYBILL_POLL_INTERVAL": "1",
    "WAYBILL_RESCUE_INTERVAL": "0.2",
    "WAYBILL_SHUTDOWN_GRACE": "5",
}

SLOW = {"lease_ttl": 60, "heartbeat_interval": 20}
"""With these settings no lease ends during a test."""


class WorkerProcess:
    """A worker program (by default the engine's own) with the handlers in `support.handlers`."""

    def __init__(
        self,
        database_url: str,
        folder: Path,
        name: str,
        settings: dict[str, str],
        *,
        program: str = "waybill_engine.worker",
        shared_imports: bool = True,
    ) -> None:
        """A forked worker has every handler that was imported before; tests about that need `shared_imports=False`."""
        self.log = folder / f"{name}.log"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("WAYBILL_")},
            **NO_METRICS,
            "PYTHONPATH": str(TESTS),
            "WAYBILL_DATABASE_URL": database_url,
            "WAYBILL_HOME": str(folder / "home"),
            "WAYBILL_LOG_FORMAT": "console",
            "WAYBILL_WORKER_HANDLERS": "support.handlers",
            **QUICK,
            **settings,
        }
        with self.log.open("wb") as log:
            self.process = Program(program, env=environment, output=log, cwd=folder, shared_imports=shared_imports)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the worker without a chance to shut down."""
        self.process.kill()
        self.process.wait()

    async def ended(self, within: float = 30.0) -> int:
        return await asyncio.wait_for(asyncio.to_thread(self.process.wait), within)

    def clean_up(self) -> None:
        kill_with_children(self.process)


async def counts(connection: Connection) -> dict[str, int]:
    rows = await connection.fetch("SELECT state, count(*) FROM public.jobs GROUP BY state")
    return {row["state"]: row["count"] for row in rows}


async def all_ended(connection: Connection) -> bool:
    return not await connection.fetchval(
        "SELECT EXISTS (SELECT FROM public.jobs WHERE state IN ('scheduled', 'queued', 'running'))"
    )


def started_runs(gate: Path) -> list[str]:
    """The runs that wait at the gate or have passed it, as `{job id}-{token}`."""
    return sorted(path.name.removeprefix("started-") for path in gate.glob("started-*"))


def show_logs(workers: Iterable[WorkerProcess]) -> str:
    return "\n".join(f"--- {worker.log.name}\n{worker.text[-4000:]}" for worker in workers)


StartWorker = Callable[..., WorkerProcess]


@contextlib.contextmanager
def worker_starter(database_url: str, folder: Path, *, program: str = "waybill_engine.worker") -> Iterator[StartWorker]:
    """Yield a function that starts workers on the test's database; kill those that still run afterwards."""
    started: list[WorkerProcess] = []
    numbers = itertools.count(1)

    def start(url: str = database_url, *, shared_imports: bool = True, **settings: object) -> WorkerProcess:
        named = {f"WAYBILL_{key.upper()}": str(value) for key, value in settings.items()}
        name = f"worker-{next(numbers)}"
        started.append(WorkerProcess(url, folder, name, named, program=program, shared_imports=shared_imports))
        return started[-1]

    try:
        yield start
    finally:
        for worker in started:
            worker.clean_up()
        print(show_logs(started))  # pytest shows this if the test failed


async def until_started(gate: Path, runs: int = 1) -> None:
    """Wait until `runs` runs have reached the gate."""

    async def started() -> bool:
        return len(started_runs(gate)) >= runs

    await eventually(started)


async def the_end(connection: Connection, job_id: uuid.UUID, within: float = 60) -> dict[str, Any]:
    """Wait until the job has ended, and return its row."""

    async def ended() -> dict[str, Any] | None:
        row = await connection.fetchrow(
            "SELECT * FROM jobs WHERE id = $1 AND state IN ('succeeded', 'failed', 'dead_letter', 'cancelled')", job_id
        )
        return dict(row) if row else None

    found = await eventually(ended, within=within)
    assert found is not None
    return found


async def the_worker(connection: Connection) -> uuid.UUID:
    """Wait until the only worker has started, and return its id."""

    async def one() -> uuid.UUID | None:
        found: uuid.UUID | None = await connection.fetchval("SELECT id FROM workers WHERE state = 'active'")
        return found

    found = await eventually(one)
    assert found is not None
    return found


async def beat(connection: Connection, worker: uuid.UUID) -> None:
    """Make the worker renew its lease now, and wait until it has."""
    seen = "SELECT last_seen_at FROM workers WHERE id = $1"
    before = await connection.fetchval(seen, worker)
    await connection.execute("SELECT pg_notify('waybill_control', $1)", str(worker))

    async def beaten() -> bool:
        return bool(await connection.fetchval(seen, worker) > before)

    await eventually(beaten)


async def enqueue_effects(connection: Connection, count: int, **payload: object) -> None:
    for _ in range(0, count, 1000):
        await enqueue_many(connection, [NewJob(EFFECT, "acme", payload) for _ in range(min(1000, count))])


async def effects_happened_once(connection: Connection, jobs: int) -> None:
    """Assert that every job succeeded and that its effect happened exactly once."""
    assert await counts(connection) == {"succeeded": jobs}
    assert await connection.fetchval("SELECT count(*) FROM public.effects") == jobs
    assert await connection.fetchval("SELECT count(DISTINCT job_id) FROM public.effects") == jobs
    twice = await connection.fetch(
        "SELECT job_id FROM job_events WHERE event = 'succeeded' GROUP BY job_id HAVING count(*) > 1"
    )
    assert twice == []
