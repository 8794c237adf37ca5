"""Real worker processes for the tests: started, frozen, killed, always cleaned up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import asyncpg
import psutil

TESTS = Path(__file__).parent.parent

# Short leases, so that tests about them are short. Still far longer than a busy machine's hiccups.
QUICK = {
    "WAYBILL_LEASE_TTL": "2",
    "WAYBILL_HEARTBEAT_INTERVAL": "0.5",
    "WAYBILL_POLL_INTERVAL": "1",
    "WAYBILL_RESCUE_INTERVAL": "0.2",
    "WAYBILL_SHUTDOWN_GRACE": "5",
}


class WorkerProcess:
    def __init__(self, database_url: str, folder: Path, name: str, settings: dict[str, str]) -> None:
        self.log = folder / f"{name}.log"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("WAYBILL_")},
            "PYTHONPATH": str(TESTS),
            "WAYBILL_DATABASE_URL": database_url,
            "WAYBILL_HOME": str(folder / "home"),
            "WAYBILL_LOG_FORMAT": "console",
            "WAYBILL_WORKER_HANDLERS": "support.handlers",
            **QUICK,
            **settings,
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "waybill_worker"], env=environment, stdout=log, stderr=log, cwd=folder
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Dead at once, with no last words."""
        self.process.kill()
        self.process.wait()

    async def ended(self, within: float = 30.0) -> int:
        return await asyncio.wait_for(asyncio.to_thread(self.process.wait), within)

    def clean_up(self) -> None:
        family: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):  # it may end while we look
            if self.process.poll() is None:
                family = [psutil.Process(self.pid)]
                family += family[0].children(recursive=True)
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()


async def counts(connection: asyncpg.Connection[asyncpg.Record]) -> dict[str, int]:
    rows = await connection.fetch("SELECT state, count(*) FROM public.jobs GROUP BY state")
    return {row["state"]: row["count"] for row in rows}


async def all_ended(connection: asyncpg.Connection[asyncpg.Record]) -> bool:
    return not await connection.fetchval(
        "SELECT EXISTS (SELECT FROM public.jobs WHERE state IN ('scheduled', 'queued', 'running'))"
    )


def started_runs(gate: Path) -> list[str]:
    """The runs that have announced themselves at a gate, as `{job id}-{token}`."""
    return sorted(path.name.removeprefix("started-") for path in gate.glob("started-*"))


def show_logs(workers: Iterable[WorkerProcess]) -> str:
    return "\n".join(f"--- {worker.log.name}\n{worker.text[-4000:]}" for worker in workers)
