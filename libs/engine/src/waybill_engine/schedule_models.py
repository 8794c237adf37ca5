"""The table of schedules: jobs that are enqueued again and again."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from waybill_engine.columns import int_column, time_column


class ScheduleRow(SQLModel, table=True):
    """A schedule, with everything that its jobs need: a worker can fire it without knowing the kind."""

    __tablename__ = "schedules"

    name: str = Field(primary_key=True)
    cron: str
    timezone: str
    missed: str
    """What happens to ticks that nobody could fire; see `waybill_engine.schedules.Missed`."""
    grace: float = Field(sa_type=sa.REAL)

    kind: str
    queue: str
    tenant: str
    payload: dict[str, Any] = Field(sa_type=JSONB)
    priority: int = int_column(0)
    cost: int = int_column(1, sa.BigInteger)
    max_attempts: int = Field(sa_type=sa.SmallInteger)
    max_crashes: int = Field(sa_type=sa.SmallInteger)
    time_limit: float = Field(sa_type=sa.REAL)

    paused_at: datetime | None = time_column(nullable=True)
    paused_reason: str | None = None
    next_at: datetime | None = time_column(nullable=True)
    """The next tick that has not fired. None when there are no more ticks."""
    last_tick: datetime | None = time_column(nullable=True)
    last_job_id: uuid.UUID | None = None
    created_at: datetime = time_column()
    updated_at: datetime = time_column()
    """When its definition last changed. Firing does not change it."""

    __table_args__ = (
        sa.CheckConstraint("missed IN ('skip', 'once', 'all')", name="schedules_missed_known"),
        sa.Index("schedules_due", "next_at", postgresql_where=sa.text("paused_at IS NULL")),
    )
