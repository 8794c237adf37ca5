"""The JSON that `--json` prints. Names are the tables' own; fields may be added, none is renamed or removed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import SQLModel

from waybill.jobs import Artefact, Job, State, Worker
from waybill.jobs.queries import Happening, QueueStats


def job_record(job: Job) -> dict[str, Any]:
    """Everything the engine knows about a job."""
    # Progress is stored in four bytes: 0.4 comes back as 0.4000000059604645.
    rounded = round(job.progress, 4) if job.progress is not None else None
    return _columns(job) | {"progress": rounded, "time_limit": round(job.time_limit, 3)}


def artefact_record(artefact: Artefact) -> dict[str, Any]:
    return _columns(artefact)


def happening_record(one: Happening) -> dict[str, Any]:
    return {
        "at": one.at,
        "event": one.event,
        "worker": one.worker,
        "lease_token": one.lease_token,
        "detail": one.detail,
    }


def queue_record(stats: QueueStats) -> dict[str, Any]:
    return {
        "queue": stats.queue,
        "paused_at": stats.paused_at,
        "paused_reason": stats.paused_reason,
        "counts": {state.value: stats.counts.get(state, 0) for state in State},
        "oldest_queued_at": stats.oldest_queued_at,
    }


def worker_record(worker: Worker, running: int, now: datetime) -> dict[str, Any]:
    return _columns(worker) | {"running": running, "lease_expired": worker.lease_expires_at < now}


def _columns(row: SQLModel) -> dict[str, Any]:
    """Every column, in the order the table declares them."""
    return {name: getattr(row, name) for name in type(row).model_fields}
