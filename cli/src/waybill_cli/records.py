"""The JSON that `--json` prints. Names are those of the tables. Fields may be added, but never renamed or removed."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlmodel import SQLModel

from waybill_engine import Artefact, Job, State, Worker
from waybill_engine.backlog import Backlog
from waybill_engine.breaker_control import BreakerHappening, BreakerStatus
from waybill_engine.queries import Happening, QueueStats
from waybill_engine.schedule_models import ScheduleRow


def job_record(job: Job) -> dict[str, Any]:
    """All columns of a job."""
    # Progress is stored in four bytes: 0.4 comes back as 0.4000000059604645.
    rounded = round(job.progress, 4) if job.progress is not None else None
    record = _columns(job) | {"progress": rounded, "time_limit": round(job.time_limit, 3)}
    # A parent that waits for its children, and a job that waits for its turn, have no start time yet.
    return record | {"run_at": None} if job.pending_children or job.parked_for else record


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
        "at_least": sorted(state.value for state in stats.at_least),
    }


def backlog_record(backlog: Backlog) -> dict[str, Any]:
    return {field.name: getattr(backlog, field.name) for field in fields(backlog)}


def breaker_record(breaker: BreakerStatus) -> dict[str, Any]:
    record = {field.name: getattr(breaker, field.name) for field in fields(breaker)}
    return record | {"held": record.pop("blocked")}


def breaker_happening_record(one: BreakerHappening) -> dict[str, Any]:
    return {"at": one.at, "event": one.event, "detail": one.detail}


def worker_record(worker: Worker, running: int, now: datetime) -> dict[str, Any]:
    return _columns(worker) | {"running": running, "lease_expired": worker.lease_expires_at < now}


def schedule_record(schedule: ScheduleRow) -> dict[str, Any]:
    return _columns(schedule) | {"time_limit": round(schedule.time_limit, 3), "grace": round(schedule.grace, 3)}


def _columns(row: SQLModel) -> dict[str, Any]:
    """Every column, in the order the table declares them."""
    return {name: getattr(row, name) for name in type(row).model_fields}
