"""The engine's tables.

`jobs` is narrow and hot. What a pipeline knows about its document lives in that pipeline's own table, keyed by job
id; big things live in storage. The partial indexes are the engine's working sets: each holds only the rows one
statement looks for, so that a million rows it does not look for cost it nothing.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel


class State(StrEnum):
    SCHEDULED = "scheduled"
    """Runs at `run_at`; retries wait here too."""
    QUEUED = "queued"
    """Can be claimed now."""
    RUNNING = "running"
    """A worker holds its lease."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """A permanent error: trying again would not help."""
    DEAD_LETTER = "dead_letter"
    """Retries or the crash budget are used up."""
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in FINAL


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.DEAD_LETTER, State.CANCELLED})


def _time(*, nullable: bool = False) -> Any:
    if nullable:
        return Field(default=None, sa_type=sa.DateTime(timezone=True))
    return Field(sa_type=sa.DateTime(timezone=True), sa_column_kwargs={"server_default": sa.func.now()})


def _int(default: int, kind: Any = sa.SmallInteger) -> Any:
    return Field(default=default, sa_type=kind, sa_column_kwargs={"server_default": str(default)})


class Job(SQLModel, table=True):
    __tablename__ = "jobs"

    id: uuid.UUID = Field(primary_key=True)
    tenant: str
    """Who is billed, and who shares fairly with whom."""
    owner: str
    """Who may see it."""
    kind: str
    queue: str
    priority: int = _int(0)
    """Higher first. Above 0 is granted by an operator."""
    cost: int = _int(1, sa.BigInteger)
    """Work in it (bytes, pages or a number of the enqueuer's): what fair share weighs."""
    state: str
    payload: dict[str, Any] = Field(sa_type=JSONB)

    attempts: int = _int(0)
    max_attempts: int = _int(1)
    crashes: int = _int(0)
    max_crashes: int = _int(3)
    isolate: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """Was there when a worker crashed: runs alone from now on, so that only the guilty are blamed."""
    run_at: datetime = _time()
    time_limit: float = Field(sa_type=sa.REAL)
    """Seconds one run may take."""

    lease_owner: uuid.UUID | None = None
    """The worker holding it while it runs. The lease lasts as long as that worker's own (see `Worker`)."""
    lease_token: int = _int(0, sa.Integer)
    """Grows with every claim and never falls: the fence of every write a worker makes."""
    cancel_requested_at: datetime | None = _time(nullable=True)
    progress: float | None = Field(default=None, sa_type=sa.REAL)
    progress_message: str | None = None

    error_code: str | None = None
    error_message: str | None = None
    error_detail: dict[str, Any] | None = Field(default=None, sa_type=JSONB)

    unique_key: str | None = None
    unique_scope: str | None = None
    unique_until: datetime | None = _time(nullable=True)
    parent_id: uuid.UUID | None = None
    awaited: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """While it is active, it is one of its parent's pending children: its end is counted there. See `families`."""
    children: int = _int(0, sa.Integer)
    """How many it has had, ended and purged ones included."""
    pending_children: int = _int(0, sa.Integer)
    """How many must end before it is queued. While there are any, it is `scheduled`, and its `run_at` is infinity,
    which Python reads as a time without a zone: look here first."""
    traceparent: str | None = None

    created_at: datetime = _time()
    updated_at: datetime = _time()
    """Last change a person would notice; heartbeats leave it alone."""
    started_at: datetime | None = _time(nullable=True)
    finished_at: datetime | None = _time(nullable=True)
    pinned_at: datetime | None = _time(nullable=True)
    """Somebody wants it kept: no limit of retention applies while this is set."""

    __table_args__ = (
        sa.CheckConstraint(
            "state IN ('scheduled', 'queued', 'running', 'succeeded', 'failed', 'dead_letter', 'cancelled')",
            name="jobs_state_known",
        ),
        sa.CheckConstraint("(state = 'running') = (lease_owner IS NOT NULL)", name="jobs_running_is_leased"),
        sa.CheckConstraint("unique_scope IN ('active', 'window', 'forever')", name="jobs_unique_scope_known"),
        sa.Index(
            "jobs_lanes",
            "queue",
            "kind",
            "isolate",
            sa.text("priority DESC"),
            "tenant",
            "id",
            postgresql_where=sa.text("state = 'queued'"),
        ),
        sa.Index("jobs_scheduled", "run_at", postgresql_where=sa.text("state = 'scheduled'")),
        sa.Index("jobs_held", "lease_owner", "kind", "tenant", postgresql_where=sa.text("lease_owner IS NOT NULL")),
        sa.Index("jobs_dead_letter", "id", postgresql_where=sa.text("state = 'dead_letter'")),
        sa.Index(
            "jobs_unique_while_active",
            "tenant",
            "kind",
            "unique_key",
            unique=True,
            postgresql_where=sa.text("unique_scope = 'active' AND state IN ('scheduled', 'queued', 'running')"),
        ),
        sa.Index(
            "jobs_unique_kept",
            "tenant",
            "kind",
            "unique_key",
            unique=True,
            postgresql_where=sa.text("unique_scope IN ('window', 'forever')"),
        ),
        sa.Index("jobs_children", "parent_id", postgresql_where=sa.text("parent_id IS NOT NULL")),
    )


class JobEvent(SQLModel, table=True):
    """Append-only history. Every run leaves exactly one row, written by the statement that ended it.

    There is no row for "enqueued" and "started": the job's `created_at` and the run's `started_at` say the same, and
    the hot path writes a third as much.
    """

    __tablename__ = "job_events"

    job_id: uuid.UUID = Field(primary_key=True)
    id: int = Field(sa_column=sa.Column(sa.BigInteger, sa.Identity(always=True), primary_key=True))
    at: datetime = _time()
    event: str
    lease_token: int | None = None
    worker_id: uuid.UUID | None = None
    started_at: datetime | None = _time(nullable=True)
    detail: dict[str, Any] | None = Field(default=None, sa_type=JSONB)


class WorkerState(StrEnum):
    ACTIVE = "active"
    DRAINING = "draining"
    """Asked to stop: finishes what it runs, claims nothing."""
    STOPPED = "stopped"
    GONE = "gone"
    """Its lease ran out and its jobs were given to others. It can never come back under this id."""


class Worker(SQLModel, table=True):
    """One worker process. All its jobs share its lease, which one small row renews."""

    __tablename__ = "workers"

    id: uuid.UUID = Field(primary_key=True)
    name: str
    host: str
    pid: int
    pod_namespace: str | None = None
    pod_name: str | None = None
    pod_uid: str | None = None
    version: str
    queues: list[str] = Field(sa_type=sa.ARRAY(sa.Text))
    kinds: list[str] = Field(sa_type=sa.ARRAY(sa.Text))
    concurrency: int
    isolating: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """Runs suspects of a crash, one at a time."""
    state: str
    started_at: datetime = _time()
    last_seen_at: datetime = _time()
    lease_expires_at: datetime = _time()
    stopped_at: datetime | None = _time(nullable=True)

    __table_args__ = (
        sa.CheckConstraint("state IN ('active', 'draining', 'stopped', 'gone')", name="workers_state_known"),
        sa.Index("workers_live", "id", postgresql_where=sa.text("state IN ('active', 'draining')")),
    )


class Queue(SQLModel, table=True):
    """What an operator decided about a queue. A queue without a row is simply open."""

    __tablename__ = "queues"

    name: str = Field(primary_key=True)
    paused_at: datetime | None = _time(nullable=True)
    paused_reason: str | None = None


class Tenant(SQLModel, table=True):
    """What an operator decided about a tenant. A tenant without a row has weight 1 and no priority to give."""

    __tablename__ = "tenants"

    name: str = Field(primary_key=True)
    weight: float = Field(default=1.0, sa_type=sa.REAL, sa_column_kwargs={"server_default": "1"})
    """Its share beside others': 2 gets twice the work done of 1."""
    top_priority: int = _int(0)
    """The highest priority its jobs may have. Above 0 is an operator's grant."""
    hold_at: datetime | None = _time(nullable=True)
    """Under legal hold since then: nothing of it is removed. See `waybill.retention`."""
    hold_reason: str | None = None
    pdf_ttl_days: float | None = Field(default=None, sa_type=sa.REAL)
    xml_ttl_days: float | None = Field(default=None, sa_type=sa.REAL)
    xml_on_download: bool | None = None
    events_ttl_days: float | None = Field(default=None, sa_type=sa.REAL)
    jobs_ttl_days: float | None = Field(default=None, sa_type=sa.REAL)
    """How long what is its is kept; where one is not set, the janitor's setting."""

    __table_args__ = (sa.CheckConstraint("weight > 0", name="tenants_weight_counts"),)


class CapRow(SQLModel, table=True):
    """At most so many jobs at once; see `waybill_engine.caps`. Without a tenant of any, without a kind of any."""

    __tablename__ = "caps"

    id: int = Field(sa_column=sa.Column(sa.Integer, sa.Identity(always=True), primary_key=True))
    tenant: str | None = None
    kind: str | None = None
    most: int

    __table_args__ = (
        sa.UniqueConstraint("tenant", "kind", name="caps_of_somebody", postgresql_nulls_not_distinct=True),
        sa.CheckConstraint("tenant IS NOT NULL OR kind IS NOT NULL", name="caps_name_somebody"),
        sa.CheckConstraint("most >= 0", name="caps_most_counts"),
    )


class DecidedCap(SQLModel, table=True):
    """A kind whose cap was set or lifted by hand; see `waybill_engine.caps`."""

    __tablename__ = "decided_caps"

    kind: str = Field(primary_key=True)


class Artefact(SQLModel, table=True):
    """A file a job published. Only this row makes a stored object a result, and only the lease holder can write it."""

    __tablename__ = "job_artefacts"

    job_id: uuid.UUID = Field(primary_key=True)
    name: str = Field(primary_key=True)
    storage_key: str
    media_type: str
    bytes: int = Field(sa_type=sa.BigInteger)
    sha256: str
    lease_token: int
    created_at: datetime = _time()
    missing_at: datetime | None = _time(nullable=True)
    """The janitor looked for the file then, and it was not there."""


class ScheduleRow(SQLModel, table=True):
    """A periodic job, with all that is needed to make its jobs: whoever fires it need not know the kind."""

    __tablename__ = "schedules"

    name: str = Field(primary_key=True)
    cron: str
    timezone: str
    missed: str
    """What becomes of ticks that nobody was there for; see `waybill_engine.schedules.Missed`."""
    grace: float = Field(sa_type=sa.REAL)

    kind: str
    queue: str
    tenant: str
    payload: dict[str, Any] = Field(sa_type=JSONB)
    priority: int = _int(0)
    cost: int = _int(1, sa.BigInteger)
    max_attempts: int = Field(sa_type=sa.SmallInteger)
    max_crashes: int = Field(sa_type=sa.SmallInteger)
    time_limit: float = Field(sa_type=sa.REAL)

    paused_at: datetime | None = _time(nullable=True)
    paused_reason: str | None = None
    next_at: datetime | None = _time(nullable=True)
    """The next tick that has not fired. None when there is none any more."""
    last_tick: datetime | None = _time(nullable=True)
    last_job_id: uuid.UUID | None = None
    created_at: datetime = _time()
    updated_at: datetime = _time()
    """Last change of what it says; firing leaves it alone."""

    __table_args__ = (
        sa.CheckConstraint("missed IN ('skip', 'once', 'all')", name="schedules_missed_known"),
        sa.Index("schedules_due", "next_at", postgresql_where=sa.text("paused_at IS NULL")),
    )
