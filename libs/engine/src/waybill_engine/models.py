"""The engine's tables.

`jobs` is narrow and hot. Whatever an application knows about its jobs belongs into its own tables, keyed by job id; big
things belong into storage. The partial indexes are the engine's working sets: each has only the rows that one statement
looks for, so that a million other rows cost it nothing.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from waybill_engine.columns import int_column, time_column


class State(StrEnum):
    SCHEDULED = "scheduled"
    """It may run at `run_at`. Retries wait here too."""
    QUEUED = "queued"
    """It can be claimed now."""
    RUNNING = "running"
    """A worker has claimed it and runs it."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It ended with a permanent error: another attempt would not help."""
    DEAD_LETTER = "dead_letter"
    """Its attempts or its crash budget are used up."""
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in FINAL


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.DEAD_LETTER, State.CANCELLED})


class Job(SQLModel, table=True):
    __tablename__ = "jobs"

    id: uuid.UUID = Field(primary_key=True)
    tenant: str
    """Who is billed. Tenants share workers fairly."""
    owner: str
    """Who may see it."""
    kind: str
    queue: str
    priority: int = int_column(0)
    """Higher runs first. A priority above 0 needs an operator's grant."""
    cost: int = int_column(1, sa.BigInteger)
    """How much work it is (bytes, pages or another unit). Tenants share by it."""
    state: str
    payload: dict[str, Any] = Field(sa_type=JSONB)

    attempts: int = int_column(0)
    max_attempts: int = int_column(1)
    crashes: int = int_column(0)
    max_crashes: int = int_column(3)
    outages: int = int_column(0)
    """How many of its runs ended in an outage of the database. Those cost no attempt, up to a limit."""
    isolate: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """It was running when a worker crashed, so it runs alone from now on: only the guilty job is blamed."""
    run_at: datetime = time_column()
    time_limit: float = Field(sa_type=sa.REAL)
    """Seconds one run may take."""

    lease_owner: uuid.UUID | None = None
    """The worker that runs it, under that worker's lease (see `Worker`)."""
    lease_token: int = int_column(0, sa.Integer)
    """It grows with every claim and never falls. It fences every write that a worker makes."""
    cancel_requested_at: datetime | None = time_column(nullable=True)
    progress: float | None = Field(default=None, sa_type=sa.REAL)
    progress_message: str | None = None

    error_code: str | None = None
    error_message: str | None = None
    error_detail: dict[str, Any] | None = Field(default=None, sa_type=JSONB)

    unique_key: str | None = None
    unique_scope: str | None = None
    unique_until: datetime | None = time_column(nullable=True)
    sequence_key: str | None = None
    """It waits for earlier jobs of its tenant and kind with this key. See `sequences`."""
    sequence_at_once: int | None = Field(default=None, sa_type=sa.SmallInteger)
    """How many jobs of the sequence may hold a place at once, itself included."""
    sequence_position: int | None = Field(default=None, sa_type=sa.BigInteger)
    """Its place in the order of the sequence, from a counter of the database."""
    parked_for: datetime | None = time_column(nullable=True)
    """When it may run once its turn has come. While this is set, it is `scheduled` and its `run_at` is infinity."""
    parent_id: uuid.UUID | None = None
    awaited: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """While it is active, it is one of its parent's pending children, and its end is counted there. See `families`."""
    children: int = int_column(0, sa.Integer)
    """How many children it has had, including ended and purged ones."""
    pending_children: int = int_column(0, sa.Integer)
    """How many children must end before it is queued. While there are any, it is `scheduled` and its `run_at` is
    infinity, which Python reads as the last day of the calendar, so look here first."""
    traceparent: str | None = None
    """The span that enqueued it, by which its runs are in the trace of what they came from; see `job_traces`."""
    tracestate: str | None = None
    tells_end: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """Its end is published to all pipelines; see `endings`."""

    created_at: datetime = time_column()
    updated_at: datetime = time_column()
    """The last change that a person would notice. Heartbeats do not change it."""
    started_at: datetime | None = time_column(nullable=True)
    finished_at: datetime | None = time_column(nullable=True)
    runnable_since: datetime | None = time_column(nullable=True)
    """When its first claim could have happened: its `run_at` at that time. A person's retry and a snooze begin anew."""
    pinned_at: datetime | None = time_column(nullable=True)
    """Somebody wants to keep it: no retention rule applies while this is set."""
    checkpoint: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    """Where its next run can go on, if its handler said so; see `checkpoints`."""

    __table_args__ = (
        sa.CheckConstraint(
            "state IN ('scheduled', 'queued', 'running', 'succeeded', 'failed', 'dead_letter', 'cancelled')",
            name="jobs_state_known",
        ),
        sa.CheckConstraint("(state = 'running') = (lease_owner IS NOT NULL)", name="jobs_running_is_leased"),
        sa.CheckConstraint("unique_scope IN ('active', 'window', 'forever')", name="jobs_unique_scope_known"),
        sa.Index(
            "jobs_owner_order",
            "queue",
            "kind",
            "isolate",
            sa.text("priority DESC"),
            "tenant",
            "owner",
            "created_at",
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
        sa.Index("jobs_of_tenant", "tenant", "id", postgresql_where=sa.text("lease_owner IS NULL")),
        sa.Index(
            "jobs_ended_badly",
            "state",
            "id",
            postgresql_include=["queue"],
            postgresql_where=sa.text("state IN ('failed', 'cancelled')"),
        ),
        sa.Index(
            "jobs_parked",
            "tenant",
            "kind",
            "sequence_key",
            "sequence_position",
            postgresql_where=sa.text("parked_for IS NOT NULL"),
        ),
        sa.Index(
            "jobs_in_turn",
            "tenant",
            "kind",
            "sequence_key",
            postgresql_where=sa.text(
                "sequence_key IS NOT NULL AND parked_for IS NULL AND state IN ('scheduled', 'queued', 'running')"
            ),
        ),
    )


class JobEvent(SQLModel, table=True):
    """Append-only history. Every run leaves exactly one row, written by the statement that ended it.

    There are no rows for "enqueued" and "started": the job's `created_at` and the run's `started_at` say the same, and
    the hot path writes only a third as much.
    """

    __tablename__ = "job_events"

    job_id: uuid.UUID = Field(primary_key=True)
    id: int = Field(sa_column=sa.Column(sa.BigInteger, sa.Identity(always=True), primary_key=True))
    at: datetime = time_column()
    event: str
    lease_token: int | None = None
    worker_id: uuid.UUID | None = None
    started_at: datetime | None = time_column(nullable=True)
    detail: dict[str, Any] | None = Field(default=None, sa_type=JSONB)


class MissedTurn(SQLModel, table=True):
    """A sequence that somebody could not advance, because its key or its next job was locked; see `sequences`."""

    __tablename__ = "missed_turns"

    id: int = Field(sa_column=sa.Column(sa.BigInteger, sa.Identity(always=True), primary_key=True))
    tenant: str
    kind: str
    sequence_key: str


class WorkerState(StrEnum):
    ACTIVE = "active"
    DRAINING = "draining"
    """It was asked to stop: it finishes what it runs and claims nothing."""
    STOPPED = "stopped"
    GONE = "gone"
    """Its lease ran out, and its jobs went back to their queues. It can never come back under this id."""


class Worker(SQLModel, table=True):
    """One worker process. All its jobs run under its lease, which is renewed in this one small row."""

    __tablename__ = "workers"

    id: uuid.UUID = Field(primary_key=True)
    name: str
    host: str
    pid: int
    pod_namespace: str | None = None
    pod_name: str | None = None
    pod_uid: str | None = None
    node_started_at: datetime | None = time_column(nullable=True)
    """When it registered, by the clock of its node, which also stamps when a container started. See `pods.verdicts`."""
    version: str
    queues: list[str] = Field(sa_type=sa.ARRAY(sa.Text))
    kinds: list[str] = Field(sa_type=sa.ARRAY(sa.Text))
    concurrency: int
    isolating: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    hears: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """It hears announcements, and takes its turn in reacting to them."""
    """It runs suspects of a crash, one at a time."""
    state: str
    started_at: datetime = time_column()
    last_seen_at: datetime = time_column()
    lease_expires_at: datetime = time_column()
    stopped_at: datetime | None = time_column(nullable=True)
    missed_at: datetime | None = time_column(nullable=True)
    """When somebody first noticed that it had not renewed its lease since the database came back; see `rescue`."""

    __table_args__ = (
        sa.CheckConstraint("state IN ('active', 'draining', 'stopped', 'gone')", name="workers_state_known"),
        sa.Index("workers_live", "id", postgresql_where=sa.text("state IN ('active', 'draining')")),
    )


class Queue(SQLModel, table=True):
    """What an operator decided about a queue. A queue without a row is not paused."""

    __tablename__ = "queues"

    name: str = Field(primary_key=True)
    paused_at: datetime | None = time_column(nullable=True)
    paused_reason: str | None = None


class Artefact(SQLModel, table=True):
    """A file that a job published. Only this row makes a stored object a result, and only the run that owns the job can
    write it."""

    __tablename__ = "job_artefacts"

    job_id: uuid.UUID = Field(primary_key=True)
    name: str = Field(primary_key=True)
    storage_key: str
    media_type: str
    bytes: int = Field(sa_type=sa.BigInteger)
    sha256: str
    lease_token: int
    created_at: datetime = time_column()
    missing_at: datetime | None = time_column(nullable=True)
    """When the janitor looked for the file and did not find it."""


class ErasureRow(SQLModel, table=True):
    """A tenant, or an owner within one, that is to be forgotten; see `waybill_engine.erasure`."""

    __tablename__ = "erasures"

    id: uuid.UUID = Field(primary_key=True)
    tenant: str | None = None
    owner: str | None = None
    requested_at: datetime = Field(sa_type=sa.DateTime(timezone=True))
    finished_at: datetime | None = time_column(nullable=True)
    jobs: int = int_column(0, sa.BigInteger)
    files: int = int_column(0, sa.BigInteger)

    __table_args__ = (
        sa.CheckConstraint("(tenant IS NULL) <> (owner IS NULL)", name="erasures_of_somebody"),
        sa.Index("erasures_open", "id", postgresql_where=sa.text("finished_at IS NULL")),
        sa.Index("erasures_of_tenants", "tenant", postgresql_where=sa.text("tenant IS NOT NULL")),
        sa.Index("erasures_of_owners", "owner", postgresql_where=sa.text("owner IS NOT NULL")),
    )


# No class: its rows have no key, and only SQL reads and writes them (`waybill_engine.relay`).
sa.Table(
    "announcements",
    SQLModel.metadata,
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("topic", sa.Text, nullable=False),
    sa.Column("since", sa.BigInteger),
    sa.Column("jobs", sa.BigInteger),
    prefixes=["UNLOGGED"],
)
