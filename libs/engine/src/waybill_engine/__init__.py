"""The job engine: enqueue jobs in your own transaction, run them on any number of workers.

    from waybill_engine import JobContext, JobKind, NewJob, enqueue, handles

is all that most programs need. Inside, there is one module per step of a job's life: `enqueue` (with `unique_keys`),
`claim`, `lease`, `finish`. Beside them: `rescue` (a worker died), `control` (a person steps in), `bulk` (the same for
all jobs that a `job_filter` selects), `families` (a job that waits for its children), `sequences` (jobs that run one
after the other by a key), `endings` (telling other pipelines how jobs end), `artefacts` (files under the fence),
`job_locks` (a job stands still while a pipeline changes its own rows), `queries` and `explain` (looking). What `claim`
takes is decided by `lanes` (what waits where), `fair_share` (who is next), `gates`, `caps`, `rates`, `tenants` and
`breaker` (what may not run now). For periodic jobs, `schedules` says what there is, `cron` when it ticks, and `ticks`
turns ticks into jobs. `models` has the tables, `kinds` and `registry` the kinds, `worker` the process that runs jobs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from waybill_engine.enqueue import Enqueued, enqueue, enqueue_many
from waybill_engine.families import Family, add_children, enqueue_family
from waybill_engine.kinds import JobKind
from waybill_engine.models import Artefact, Job, JobEvent, Queue, State, Worker, WorkerState
from waybill_engine.new_job import NewJob
from waybill_engine.registry import declares, handles, kind_named, known_kinds, register_kinds
from waybill_engine.retry import RetryPolicy
from waybill_engine.rules import Pace
from waybill_engine.sequences import SequenceKey
from waybill_engine.unique_keys import Unique, UniqueScope

if TYPE_CHECKING:
    from waybill_engine.claim import ClaimedJob
    from waybill_engine.context import JobContext
    from waybill_engine.schedules import Missed, Schedule, tick_of
    from waybill_engine.snooze import Snooze

__all__ = [
    "Artefact",
    "ClaimedJob",
    "Enqueued",
    "Family",
    "Job",
    "JobContext",
    "JobEvent",
    "JobKind",
    "Missed",
    "NewJob",
    "Pace",
    "Queue",
    "RetryPolicy",
    "Schedule",
    "SequenceKey",
    "Snooze",
    "State",
    "Unique",
    "UniqueScope",
    "Worker",
    "WorkerState",
    "add_children",
    "declares",
    "enqueue",
    "enqueue_family",
    "enqueue_many",
    "handles",
    "kind_named",
    "known_kinds",
    "register_kinds",
    "tick_of",
]

# Imported on first use: a process that only enqueues needs neither storage nor cron.
_ON_FIRST_USE = {
    "JobContext": "waybill_engine.context",
    "ClaimedJob": "waybill_engine.claim",
    "Missed": "waybill_engine.schedules",
    "Schedule": "waybill_engine.schedules",
    "Snooze": "waybill_engine.snooze",
    "tick_of": "waybill_engine.schedules",
}


def __getattr__(name: str) -> Any:
    module = _ON_FIRST_USE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(module), name)
    return found
