"""Measures the janitor with a hundred thousand expired objects while a worker picks up other jobs.

Each conversion has three objects: its document and two results. Everything is forty days old and on a local disk. The
janitor is the product's own process with its defaults. The benchmark watches its memory and its longest transaction,
and compares how long single jobs wait for an idle worker while it works with how long they wait before and after.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import psutil

from benchmarks.arena import Arena, ContestantFailed, stop
from benchmarks.contestants import WAYBILL
from benchmarks.figures import percentile
from benchmarks.options import Options
from benchmarks.pick_up import waits
from benchmarks.report import Check, Section
from waybill.ids import first_id_at
from waybill.storage import upload_key
from waybill_cli.local.tether import tethered
from waybill_engine.artefacts import artefact_key

_OBJECTS = 100_000
_EACH = 3
_AGE = timedelta(days=40)
_OWNERS = 200

_JOBS = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, lease_token, created_at, started_at,
                  finished_at)
SELECT id, 'acme', 'session:' || number % $2, 'convert_pdf', 'convert', 'succeeded', '{}', 60, 1, $3, $3, $3
  FROM unnest($1::uuid[]) WITH ORDINALITY AS made (id, number)
"""

_CONVERSIONS = """
INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, status, listed_at)
SELECT id, 'acme', 'session:' || number % $3, 'a.pdf', 4, id::text, 'm', key, 'complete', $4
  FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS made (id, key, number)
"""

_ARTEFACTS = """
INSERT INTO job_artefacts (job_id, name, storage_key, media_type, bytes, sha256, lease_token)
SELECT id, $3, key, 'application/xml', 4, 'ab', 1 FROM unnest($1::uuid[], $2::text[]) AS made (id, key)
"""

_LONGEST = """
SELECT COALESCE(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 FROM pg_stat_activity
 WHERE application_name = 'waybill janitor' AND datname = current_database() AND xact_start IS NOT NULL
"""

_LEFT = "SELECT count(*) FROM garbage"


@dataclass
class Watched:
    memory: list[int] = field(default_factory=list)
    """Bytes, sampled every few milliseconds of the run."""
    longest: float = 0.0
    """The age in seconds of the oldest transaction that was seen."""
    seconds: float = 0.0
    cpu: float = 0.0


async def fill(url: str, folder: Path, objects: int) -> int:
    """Create conversions that ended long ago, with their files. Returns the number of objects."""
    connection = await asyncpg.connect(url)
    jobs = -(-objects // _EACH)
    then = datetime.now(UTC) - _AGE
    first = first_id_at(then).int
    for start in range(0, jobs, 2000):
        ids = [uuid.UUID(int=first + (number << 16)) for number in range(start, min(start + 2000, jobs))]
        uploads = [upload_key(one) for one in ids]
        await connection.execute(_JOBS, ids, _OWNERS, then)
        await connection.execute(_CONVERSIONS, ids, uploads, _OWNERS, then)
        keys = list(uploads)
        for name in ("xml", "provenance.json"):
            results = [artefact_key(one, 1, one, name) for one in ids]
            await connection.execute(_ARTEFACTS, ids, results, name)
            keys += results
        await asyncio.to_thread(_write, folder, keys)
    await connection.execute("VACUUM ANALYZE jobs")
    await connection.execute("CHECKPOINT")
    await connection.close()
    return jobs * _EACH


def _write(folder: Path, keys: list[str]) -> None:
    for key in keys:
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"<a/>")


@contextlib.asynccontextmanager
async def _janitor(arena: Arena, url: str, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *tethered([sys.executable, "-m", "waybill_janitor"], on_parent_death=signal.SIGKILL),
        cwd=arena.home,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "WAYBILL_DATABASE_URL": url,
            "WAYBILL_STORAGE_URL": str(folder),
            "WAYBILL_HOME": str(arena.home),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        await stop(process)


async def watch(process: asyncio.subprocess.Process, url: str) -> Watched:
    """Watch the janitor until it ends."""
    seen, started = Watched(), time.monotonic()
    looked = psutil.Process(process.pid)
    connection = await asyncpg.connect(url)
    while process.returncode is None:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            seen.memory.append(looked.memory_info().rss)
            times = looked.cpu_times()
            seen.cpu = times.user + times.system
        seen.longest = max(seen.longest, await connection.fetchval(_LONGEST))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.02):
                await process.wait()
    seen.seconds = time.monotonic() - started
    await connection.close()
    if process.returncode != 0:
        raise ContestantFailed(f"The janitor ended with {process.returncode}.")
    return seen


async def measure(arena: Arena, options: Options) -> Section:
    folder = arena.home / "storage"
    async with arena.database(WAYBILL) as url:
        options.say(f"janitor: making {_OBJECTS:,} expired objects")
        objects = await fill(url, folder, _OBJECTS)
        options.say("janitor: picking up jobs without it")
        half = options.samples // 2
        alone = [wait async for wait in waits(arena, WAYBILL, url, {}, half)]
        options.say("janitor: picking up jobs while it works")
        beside: list[float] = []
        async with _janitor(arena, url, folder) as process:
            watching = asyncio.create_task(watch(process, url))
            async with contextlib.aclosing(waits(arena, WAYBILL, url, {}, 1_000_000)) as waiting:  # type: ignore[type-var]
                async for wait in waiting:
                    if watching.done():
                        break
                    beside.append(wait)
            seen = await watching
        options.say("janitor: picking up jobs after it")
        alone += [wait async for wait in waits(arena, WAYBILL, url, {}, half)]
        left = sum(1 for path in folder.rglob("*") if path.is_file())
    return _section(objects, left, seen, alone, beside)


def _section(objects: int, left: int, seen: Watched, alone: list[float], beside: list[float]) -> Section:
    # Counted from a tenth of the run on, when everything is imported and every statement is prepared.
    settled = seen.memory[len(seen.memory) // 10 :]
    growth = (max(settled) - settled[0]) / 2**20
    rate = (objects - left) / seen.seconds
    p99 = {"without it": percentile(alone, 99), "while it works": percentile(beside, 99)}
    return Section(
        title=f"The janitor, {objects:,} expired objects on a local disk",
        heading=("", "objects/s", "CPU s", "memory MB", "longest transaction ms", "pick-up p50 ms", "p99 ms"),
        rows=[
            ("without it", "", "", "", "", f"{percentile(alone, 50):.2f}", f"{p99['without it']:.2f}"),
            (
                "while it works",
                f"{rate:,.0f}",
                f"{seen.cpu:.1f}",
                f"{max(settled) / 2**20:.0f}",
                f"{seen.longest * 1000:.0f}",
                f"{percentile(beside, 50):.2f}",
                f"{p99['while it works']:.2f}",
            ),
        ],
        checks=[
            Check.at_least("objects removed a second", rate, 1000, "{:,.0f}"),
            Check.at_most("objects left", left, 0, "{:.0f}"),
            Check.at_most("memory growth", growth, 16, "{:.0f} MB"),
            Check.at_most("longest transaction", seen.longest, 1.0, "{:.2f} s"),
            Check.at_most("pick-up p99, to without it", p99["while it works"] / p99["without it"], 1.5),
        ],
        numbers={
            "seconds": seen.seconds,
            "objects": objects,
            "memory": [settled[0], max(settled)],
            "longest_transaction": seen.longest,
            "waits": {"alone": alone, "beside": beside},
        },
    )
