"""The tables of samples: how much waits and runs, taken every few seconds, and how much ended in each minute."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field, SQLModel


class SampleRow(SQLModel, table=True):
    """One look at the whole system; see `waybill_engine.samples`."""

    __tablename__ = "samples"

    taken_at: datetime = Field(primary_key=True, sa_type=sa.DateTime(timezone=True))
    workers: dict[str, int] = Field(sa_type=JSONB)
    """How many workers are in each state."""
    breakers: dict[str, str] = Field(sa_type=JSONB)
    """The state of each dependency's breaker."""
    limits: list[Any] = Field(sa_type=JSONB)
    """For each kind, whether a cap or a rate is at its limit."""
    tenants: list[Any] | None = Field(default=None, sa_type=JSONB)
    """The tenants with the most jobs. Only the newest sample has them."""
    waiting_longest: list[uuid.UUID] | None = Field(default=None, sa_type=ARRAY(sa.Uuid))
    """The job that has waited longest in each lane. Only the newest sample has them."""
    waiting: list[Any] | None = Field(default=None, sa_type=JSONB)
    """How many jobs of each kind wait in each queue, for `waybill_engine.backlog`. Only the newest sample has them."""
    cut_off: list[str] = Field(sa_type=ARRAY(sa.Text))
    """The states of which there are more jobs than were counted."""


class KindSampleRow(SQLModel, table=True):
    """How many jobs of one kind were in each state at the time of a sample."""

    __tablename__ = "kind_samples"

    taken_at: datetime = Field(primary_key=True, sa_type=sa.DateTime(timezone=True))
    kind: str = Field(primary_key=True)
    queued: int
    scheduled: int
    running: int
    dead_letter: int
    oldest_runnable_at: datetime | None = Field(default=None, sa_type=sa.DateTime(timezone=True))


class EnqueuedElsewhere(SQLModel, table=True):
    """Jobs that the SQL function or a command enqueued; see `waybill_engine.enqueued_elsewhere`."""

    __tablename__ = "enqueued_elsewhere"

    id: int = Field(sa_column=sa.Column(sa.BigInteger, sa.Identity(always=True), primary_key=True))
    kind: str
    by: str
    """`sql` or `command`."""
    jobs: int = Field(sa_type=sa.BigInteger)


class FinishedInMinute(SQLModel, table=True):
    """How many jobs of one kind ended in one minute, and how; see `waybill_engine.throughput`."""

    __tablename__ = "finished_by_minute"

    minute: datetime = Field(primary_key=True, sa_type=sa.DateTime(timezone=True))
    kind: str = Field(primary_key=True)
    outcome: str = Field(primary_key=True)
    jobs: int = Field(sa_type=sa.BigInteger)
    seconds_queued: float
    """The sum over these jobs of the time between being runnable and being claimed, before their last run."""
    seconds_running: float
    """The sum over these jobs of the time of their last run."""

    __table_args__ = (sa.Index("finished_of_kind", "kind", "minute"),)
