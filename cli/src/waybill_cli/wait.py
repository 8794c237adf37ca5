"""Waits for a job to end, and reports its progress."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable

from waybill.db import Database
from waybill_engine import Job, State, queries

_EVERY = 0.2
"""Seconds between reads. They use the primary key, so they cost the database almost nothing."""


async def follow(
    database: Database, job_id: uuid.UUID, *, within: float | None, on_change: Callable[[Job], None]
) -> Job:
    """The job once it has ended, or after `within` seconds. Calls `on_change` for every change."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within if within is not None else None
    seen: tuple[object, ...] = ()
    while True:
        async with database.transaction() as session:
            job = await queries.get_job(session, job_id)
        looks = (job.state, job.progress, job.progress_message, job.cancel_requested_at, job.attempts)
        if looks != seen:
            seen = looks
            on_change(job)
        left = deadline - loop.time() if deadline is not None else _EVERY
        if State(job.state).final or left <= 0:
            return job
        await asyncio.sleep(min(_EVERY, left))
