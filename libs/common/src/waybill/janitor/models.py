"""The tables of the janitor and of what it looks after in storage: garbage and copies."""

from __future__ import annotations

import uuid
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel


class TaskOutcome(StrEnum):
    RUNNING = "running"
    DONE = "done"
    UNFINISHED = "unfinished"
    """Its time was up; the next run goes on."""
    FAILED = "failed"
    DIED = "died"
    """It was killed, or lost its lease; the next run found that out."""


_OUTCOMES = "outcome IN ('running', 'done', 'unfinished', 'failed', 'died')"


def _time(*, nullable: bool = False) -> Any:
    kind: Any = sa.DateTime(timezone=True)
    return Field(default=None, sa_type=kind) if nullable else Field(sa_type=kind)


class GarbageRow(SQLModel, table=True):
    """A stored object that no row names any more; written by triggers on the rows that named it, and by `garbage`."""

    __tablename__ = "garbage"

    key: str = Field(primary_key=True)
    since: datetime = _time()


class JanitorLeaseRow(SQLModel, table=True):
    """Who cleans up now. One row: only one janitor works at a time."""

    __tablename__ = "janitor_lease"

    name: str = Field(primary_key=True)
    token: int = Field(sa_type=sa.BigInteger)
    holder: str
    expires_at: datetime = _time()


class JanitorRunRow(SQLModel, table=True):
    __tablename__ = "janitor_runs"

    id: uuid.UUID = Field(primary_key=True)
    holder: str
    started_at: datetime = _time()
    finished_at: datetime | None = _time(nullable=True)
    outcome: str

    __table_args__ = (sa.CheckConstraint(_OUTCOMES, name="janitor_runs_outcome_known"),)


class JanitorTaskRow(SQLModel, table=True):
    """One task of one run."""

    __tablename__ = "janitor_tasks"

    run_id: uuid.UUID = Field(primary_key=True)
    task: str = Field(primary_key=True)
    started_at: datetime = _time()
    finished_at: datetime | None = _time(nullable=True)
    outcome: str
    done: dict[str, int] = Field(sa_type=JSONB)
    """What it did, written with every batch."""
    found: dict[str, float] = Field(sa_type=JSONB)
    """How it found things."""
    error: str | None = None

    __table_args__ = (sa.CheckConstraint(_OUTCOMES, name="janitor_tasks_outcome_known"),)


class JanitorTotalRow(SQLModel, table=True):
    """All that was ever done, whatever becomes of the runs' rows."""

    __tablename__ = "janitor_totals"

    task: str = Field(primary_key=True)
    figure: str = Field(primary_key=True)
    total: int = Field(sa_type=sa.BigInteger)


class ScanCursorRow(SQLModel, table=True):
    """Where a task that looks at everything goes on in the next run."""

    __tablename__ = "janitor_places"

    task: str = Field(primary_key=True)
    place: str


class StorageCopy(SQLModel, table=True):
    """An object that `waybill storage migrate` has copied and verified."""

    __tablename__ = "storage_copies"

    place: str = Field(primary_key=True)
    """The URL of the storage that it was copied to."""
    key: str = Field(primary_key=True)
    bytes: int = Field(sa_type=sa.BigInteger)
    sha256: str
    copied_at: datetime = _time()
