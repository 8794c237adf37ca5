"""Handlers that record when they ran, on the machine's monotonic clock. Workers load them beside `support.handlers`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from support.handlers import SOON, note_effect
from waybill.db.database import Connection
from waybill_engine import JobContext, JobKind, handles

BOTH = "support.handlers,support.timed_handlers"

TIMED = JobKind("timed", retry=SOON)
TIMED_TOO = JobKind("timed_too", retry=SOON)


@handles(TIMED)
async def timed(payload: dict[str, Any], job: JobContext) -> None:
    began = time.monotonic_ns()
    await asyncio.sleep(payload["seconds"])
    async with job.complete() as session:
        await note_effect(session, job, f"{began} {time.monotonic_ns()}")


@handles(TIMED_TOO)
async def timed_too(payload: dict[str, Any], job: JobContext) -> None:
    await timed(payload, job)


def most_at_once(spans: Iterable[tuple[int, int]]) -> int:
    """The highest number of runs at the same moment."""
    steps = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
    running = most = 0
    for _, step in steps:
        running += step
        most = max(most, running)
    return most


async def spans(connection: Connection, where: str) -> list[tuple[int, int]]:
    rows = await connection.fetch(
        f"SELECT note FROM public.effects JOIN jobs ON jobs.id = job_id WHERE note IS NOT NULL AND {where}"
    )
    return [(int(began), int(ended)) for began, ended in (row["note"].split() for row in rows)]
