"""Progress can be seen while a job runs."""

from __future__ import annotations

from pathlib import Path

from support import rude_handlers as rude
from support.patience import eventually
from support.rude_handlers import BOTH
from support.workers import (
    StartWorker,
)
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue


async def test_progress_can_be_seen_while_the_job_runs(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    start_worker(worker_handlers=BOTH)
    job = await enqueue(connection, NewJob(rude.QUIET, "acme", {"gate": str(gate)}))

    async def seen() -> bool:
        row = await connection.fetchrow("SELECT progress, progress_message FROM jobs WHERE id = $1", job.id)
        return row is not None and tuple(row) == (0.25, "a quarter")

    await eventually(seen)
