"""Measures what a no-op job costs the server, part by part: one index after another is left out.

The claims and completions are the engine's own, in batches of a thousand on one connection. What counts is the
processor time of that connection's server process, which depends little on what else the machine is doing. What is
left without indexes is, against the bare loop, the price of wide rows, lanes, fences and history.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import asyncpg

from benchmarks import floor
from benchmarks.arena import Arena
from benchmarks.contestants import FLOOR, WAYBILL, Contestant
from benchmarks.handlers import NOOP
from benchmarks.options import Options
from benchmarks.processor import milliseconds_of
from benchmarks.report import Section
from waybill.db.database import Connection
from waybill.db.session_settings import ONE_PLAN
from waybill.ids import new_id
from waybill_engine.claim import claim
from waybill_engine.fair_share import FairShare
from waybill_engine.finish import succeed
from waybill_engine.lanes import LaneScan
from waybill_engine.lease import WorkerInfo, register

T = TypeVar("T")

_BATCH = 1000

_LEFT_OUT: Sequence[tuple[str, Sequence[str]]] = (
    ("Waybill as it is", ()),
    ("without the index for lists of a tenant", ("DROP INDEX jobs_of_tenant",)),
    ("and without the one for what a worker holds", ("DROP INDEX jobs_held",)),
    (
        "and without those that no-op jobs are not in",
        (
            "DROP INDEX jobs_scheduled, jobs_dead_letter, jobs_unique_while_active, jobs_unique_kept, jobs_children",
            "DROP INDEX jobs_parked, jobs_in_turn, jobs_ended_badly",
        ),
    ),
    ("and without the history's index", ("ALTER TABLE job_events DROP CONSTRAINT job_events_pkey",)),
)


@dataclass(frozen=True)
class Parts:
    """Microseconds of the server's processor time per job."""

    claim: float
    finish: float

    @property
    def total(self) -> float:
        return self.claim + self.finish


async def measure(arena: Arena, options: Options) -> Section:
    options.say("parts: bare SQL loop")
    found = {"bare SQL loop": await _of_floor(arena, options.jobs)}
    removed: list[str] = []
    for name, statements in _LEFT_OUT:
        options.say(f"parts: {name}")
        removed += statements
        found[name] = await _of_waybill(arena, options.jobs, removed)
    return Section(
        title=f"What {options.jobs:,} no-op jobs cost the server, by parts",
        heading=("", "claim", "finish", "both"),
        rows=[
            (name, f"{one.claim:.1f} µs", f"{one.finish:.1f} µs", f"{one.total:.1f} µs") for name, one in found.items()
        ],
        notes=["Processor time of the server process per job, in batches of a thousand."],
        numbers={"microseconds_per_job": {name: [one.claim, one.finish] for name, one in found.items()}},
    )


async def _of_waybill(arena: Arena, jobs: int, without: Sequence[str]) -> Parts:
    async with _filled(arena, WAYBILL, jobs, without, ONE_PLAN) as connection:
        worker = WorkerInfo(new_id(), "bench", "bench", 0, "bench", [NOOP.queue], [NOOP.name], 100)
        await register(connection, worker, ttl=86400)
        fair_share = FairShare()
        lanes, rules = await LaneScan(worker.queues, worker.kinds).look(connection)
        fair_share.apply(rules)
        fair_share.found(lanes, fair_share.announcements)

        async def take() -> list[tuple[uuid.UUID, int]]:
            return [(job.id, job.token) for job in await claim(connection, worker.id, fair_share, _BATCH)]

        async def finish(taken: list[tuple[uuid.UUID, int]]) -> None:
            await succeed(connection, worker.id, taken)

        return await _timed(connection, jobs, take, finish)


async def _of_floor(arena: Arena, jobs: int) -> Parts:
    async with _filled(arena, FLOOR, jobs, (), {}) as connection:

        async def take() -> list[int]:
            return [row["id"] for row in await connection.fetch(floor.CLAIM, _BATCH)]

        async def finish(taken: list[int]) -> None:
            await connection.execute(floor.FINISH, taken)

        return await _timed(connection, jobs, take, finish)


@contextlib.asynccontextmanager
async def _filled(
    arena: Arena, contestant: Contestant, jobs: int, without: Sequence[str], settings: dict[str, str]
) -> AsyncIterator[Connection]:
    async with arena.database(contestant) as url:
        await arena.run(contestant, url, "fill", str(jobs))
        connection: Connection = await asyncpg.connect(url, server_settings=settings)
        try:
            for statement in (*without, "VACUUM ANALYZE", "CHECKPOINT"):
                await connection.execute(statement)
            yield connection
        finally:
            await connection.close()


async def _timed(
    connection: Connection,
    jobs: int,
    take: Callable[[], Awaitable[list[T]]],
    finish: Callable[[list[T]], Awaitable[None]],
) -> Parts:
    server = connection.get_server_pid()
    claiming = finishing = 0.0
    done = 0
    while done < jobs:
        began = milliseconds_of(server)
        taken = await take()
        claimed = milliseconds_of(server)
        await finish(taken)
        claiming += claimed - began
        finishing += milliseconds_of(server) - claimed
        assert taken, f"{jobs - done} jobs are left, and nobody gets them"
        done += len(taken)
    return Parts(claiming / jobs * 1000, finishing / jobs * 1000)
