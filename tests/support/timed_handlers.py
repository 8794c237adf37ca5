"""Handlers that tell when they ran, by a clock all processes of a machine share. Loaded beside `support.handlers`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from support.handlers import SOON
from waybill.db.database import Connection
from waybill_engine import JobKind
from waybill_engine.context import JobContext
from waybill_engine.registry import handles

BOTH = "support.handlers,support.timed_handlers"

TIMED = JobKind("timed", retry=SOON)
TIMED_TOO = JobKind("timed_too", retry=SOON)


@handles(TIMED)
async def timed(payload: dict[str, Any], job: JobContext) -> None:
    began = time.monotonic_ns()
    await asyncio.sleep(payload["seconds"])
    async with job.complete() as session:
        await session.execute(
            sa.text("INSERT INTO public.effects (job_id, lease_token, note) VALUES (:job_id, :token, :note)"),
            {"job_id": job.id, "token": job.lease.token, "note": f"{began} {time.monotonic_ns()}"},
        )


@handles(TIMED_TOO)
async def timed_too(payload: dict[str, Any], job: JobContext) -> None:
    await timed(payload, job)


def most_at_once(spans: Iterable[tuple[int, int]]) -> int:
    """How many of these ran at the same moment, at most."""
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
