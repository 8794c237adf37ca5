"""`make bench`: drain, enqueue and pick-up, each beside its floor. `make bench ARGS="--jobs 20000 --json out.json"`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
from rich.console import Console
from rich.table import Table

from benchmarks import floor
from benchmarks.handlers import NOOP
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill.jobs import NewJob, enqueue, enqueue_many
from waybill_cli.local.postgres import EmbeddedPostgres

_SERVER = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "512MB", "max_wal_size": "4GB"}


@contextmanager
def worker(url: str, home: Path) -> Iterator[None]:
    environment = {
        **os.environ,
        "WAYBILL_DATABASE_URL": url,
        "WAYBILL_HOME": str(home),
        "WAYBILL_LOG_LEVEL": "warning",
        "WAYBILL_WORKER_HANDLERS": "benchmarks.handlers",
    }
    process = subprocess.Popen([sys.executable, "-m", "waybill_worker"], env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


async def one_ran(connection: Connection) -> float:
    """Seconds from the enqueue of a single job to its start, by the database's clock."""
    job = await enqueue(connection, NewJob(NOOP, "bench"))
    while True:
        row = await connection.fetchrow(
            "SELECT extract(epoch FROM started_at - created_at)::float8 AS took FROM jobs WHERE id = $1", job.id
        )
        if row is not None and row["took"] is not None:
            return float(row["took"])
        await asyncio.sleep(0.002)


async def measure_enqueue(connection: Connection, jobs: int) -> tuple[float, float]:
    started = time.perf_counter()
    for _ in range(0, jobs, 5000):
        await enqueue_many(connection, [NewJob(NOOP, "bench") for _ in range(5000)])
    ours = jobs / (time.perf_counter() - started)
    await connection.execute("CREATE TABLE copied (LIKE jobs INCLUDING ALL)")
    rows = await connection.fetch("SELECT * FROM jobs LIMIT $1", jobs)
    columns = list(rows[0].keys())
    started = time.perf_counter()
    await connection.copy_records_to_table("copied", records=[tuple(row) for row in rows], columns=columns)
    return ours, jobs / (time.perf_counter() - started)


async def measure_drain(connection: Connection, url: str, home: Path, jobs: int) -> tuple[float, list[float]]:
    """Committed completions per second of one worker process, and pick-up times of single jobs."""
    await connection.execute("VACUUM ANALYZE jobs")
    done = "SELECT count(*) FROM job_events WHERE event = 'succeeded'"
    with worker(url, home):
        while (before := await connection.fetchval(done)) == 0:
            await asyncio.sleep(0.005)
        started = time.perf_counter()
        while await connection.fetchval(done) < jobs:
            await asyncio.sleep(0.02)
        rate = (jobs - before) / (time.perf_counter() - started)
        return rate, [await one_ran(connection) for _ in range(200)]


async def run(server: EmbeddedPostgres, home: Path, jobs: int) -> dict[str, float]:
    url = server.create_database("bench")
    await upgrade(url)
    connection: Connection = await asyncpg.connect(url)
    await floor.prepare(connection, jobs)
    started = time.perf_counter()
    assert await floor.drain(connection) == jobs
    bare = jobs / (time.perf_counter() - started)
    enqueued, copied = await measure_enqueue(connection, jobs)
    drained, pick_ups = await measure_drain(connection, url, home, jobs)
    await connection.close()
    cuts = statistics.quantiles(pick_ups, n=100)
    return {
        "drain_per_second": drained,
        "floor_drain_per_second": bare,
        "drain_to_floor": drained / bare,
        "enqueue_per_second": enqueued,
        "copy_per_second": copied,
        "enqueue_to_copy": enqueued / copied,
        "pick_up_p50_ms": statistics.median(pick_ups) * 1000,
        "pick_up_p99_ms": cuts[98] * 1000,
    }


def show(found: dict[str, float], jobs: int) -> None:
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    table = Table(title=f"{jobs:,} no-op jobs, one worker process, {machine}")
    table.add_column("what")
    table.add_column("Waybill", justify="right")
    table.add_column("floor", justify="right")
    table.add_column("ratio", justify="right")
    drain, bare = found["drain_per_second"], found["floor_drain_per_second"]
    table.add_row("drain, jobs/s (floor: bare SQL loop)", f"{drain:,.0f}", f"{bare:,.0f}", f"{drain / bare:.2f}")
    ours, copied = found["enqueue_per_second"], found["copy_per_second"]
    table.add_row("bulk enqueue, jobs/s (floor: COPY)", f"{ours:,.0f}", f"{copied:,.0f}", f"{ours / copied:.2f}")
    table.add_row("pick-up of one job, p50 / p99 ms", f"{found['pick_up_p50_ms']:.1f} / {found['pick_up_p99_ms']:.1f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, EmbeddedPostgres.temporary(settings=_SERVER) as server:
        found = asyncio.run(run(server, Path(home), arguments.jobs))
    show(found, arguments.jobs)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
