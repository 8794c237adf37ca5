"""The job engine: one file per step of a job's life.

`enqueue` → `claim` → `lease` → `finish`, and beside them `rescue` (a worker died), `control` (a person steps in),
`artefacts` (files under the fence), `queries` and `explain` (looking). `models` has the tables, `kinds` the kinds.
"""

from waybill.jobs.claim import Lease
from waybill.jobs.enqueue import Enqueued, NewJob, Unique, UniqueScope, enqueue, enqueue_many
from waybill.jobs.kinds import JobKind
from waybill.jobs.models import Artefact, Job, JobEvent, Queue, State, Worker, WorkerState

__all__ = [
    "Artefact",
    "Enqueued",
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
    "enqueue",
    "enqueue_many",
]
