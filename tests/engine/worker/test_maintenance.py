"""Scheduled jobs become claimable when they are due, without waiting for a poll."""

from __future__ import annotations

from support import handlers
from support.workers import (
    StartWorker,
    the_end,
)
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue


async def test_scheduled_jobs_start_when_they_are_due(connection: Connection, start_worker: StartWorker) -> None:
    start_worker(poll_interval=60)
    first = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    await the_end(connection, first.id)

    job = await enqueue(connection, NewJob(handlers.NOOP, "acme", delay=0.5))
    row = await the_end(connection, job.id)

    assert row["started_at"] >= row["run_at"]
