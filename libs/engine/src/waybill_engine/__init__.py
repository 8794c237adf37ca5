"""The job engine: one file per step of a job's life.

`enqueue` → `claim` → `lease` → `finish`, and beside them `rescue` (a worker died), `control` (a person steps in),
`families` (a job that waits for others), `artefacts` (files under the fence), `queries` and `explain` (looking). What
`claim` takes is decided by `lanes` (what waits where), `shares` (who is next), `caps`, `tenants` and `breaker` (who may
not be). Periodic jobs: `schedules` says which there are, `cron` when they tick, `fire` turns ticks into jobs. `models`
has the tables, `kinds` the kinds.
"""

from waybill_engine.claim import Lease
from waybill_engine.enqueue import Enqueued, NewJob, Unique, UniqueScope, enqueue, enqueue_many
from waybill_engine.families import Family, add_children, enqueue_family
from waybill_engine.kinds import JobKind
from waybill_engine.models import Artefact, Job, JobEvent, Queue, State, Worker, WorkerState

__all__ = [
    "Artefact",
    "Enqueued",
    "Family",
    "Job",
    "JobEvent",
    "JobKind",
    "Lease",
    "NewJob",
    "Queue",
    "State",
    "Unique",
    "UniqueScope",
    "Worker",
    "WorkerState",
    "add_children",
    "enqueue",
    "enqueue_family",
    "enqueue_many",
]
