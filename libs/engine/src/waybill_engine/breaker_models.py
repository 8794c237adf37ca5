"""The circuit breakers' tables: their states, counts and events, and which kinds need which dependency."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field, SQLModel


class BreakerState(StrEnum):
    CLOSED = "closed"
    """The dependency works, as far as we know."""
    OPEN = "open"
    """The dependency is down: its jobs stay queued."""
    HALF_OPEN = "half_open"
    """A few jobs, the probes, find out whether it works again."""


def _moment(default: Any) -> Any:
    return Field(sa_type=sa.DateTime(timezone=True), sa_column_kwargs={"server_default": default})


class Breaker(SQLModel, table=True):
    """One dependency's breaker. A breaker without a row is closed: nothing ever happened to it."""

    __tablename__ = "breakers"

    name: str = Field(primary_key=True)
    state: str
    since: datetime = _moment(sa.func.now())
    """When this state began. It tells one half-open period from the next."""
    open_until: datetime | None = Field(default=None, sa_type=sa.DateTime(timezone=True))
    """While it is open, when probes may start. None means when an operator resets it."""
    open_seconds: float = Field(default=0.0, sa_type=sa.REAL, sa_column_kwargs={"server_default": "0"})
    """How long it was opened for; doubles with every probe that fails."""
    successes: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """How many probes succeeded in this half-open period."""
    counted_from: datetime = _moment("epoch")
    """Calls before this time do not count, so that a breaker that has just closed does not open for old failures."""
    reason: str | None = None
    cooldown_until: datetime | None = Field(default=None, sa_type=sa.DateTime(timezone=True))
    """The dependency asked us to stay away until then, whatever the state. Afterwards calls come back gradually."""
    cooldown_seconds: float = Field(default=0.0, sa_type=sa.REAL, sa_column_kwargs={"server_default": "0"})
    """How long the last cool-down was, if nothing has succeeded since. The next one is twice as long."""
    failed_in_a_row: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """How many jobs failed since the last success, of those whose last run had not failed."""
    away_in_a_row: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """How many calls since the last success could not even reach the dependency."""

    __table_args__ = (
        sa.CheckConstraint("state IN ('closed', 'open', 'half_open')", name="breakers_state_known"),
        sa.CheckConstraint("open_until IS NULL OR state = 'open'", name="breakers_until_only_open"),
    )


class BreakerCount(SQLModel, table=True):
    """How many calls the fleet made, and how many failed, in one bucket of time."""

    __tablename__ = "breaker_counts"

    name: str = Field(primary_key=True)
    bucket: datetime = Field(primary_key=True, sa_type=sa.DateTime(timezone=True))
    calls: int
    failures: int
    succeeded_at: datetime | None = Field(default=None, sa_type=sa.DateTime(timezone=True))
    """When the last of these calls succeeded. It tells a job that fails alone from an outage."""


class BreakerEvent(SQLModel, table=True):
    """One transition: `opened`, `half_opened`, `reopened`, `closed`, or an operator's `tripped` and `reset`; and
    `asked_to_wait` when a cool-down begins."""

    __tablename__ = "breaker_events"

    name: str = Field(primary_key=True)
    id: int = Field(sa_column=sa.Column(sa.BigInteger, sa.Identity(always=True), primary_key=True))
    at: datetime = _moment(sa.func.now())
    event: str
    detail: dict[str, Any] = Field(sa_type=JSONB)


class KnownKind(SQLModel, table=True):
    """A kind that some worker serves or served: the dependencies it needs, and the limits of its jobs.

    The limits are for the SQL function `waybill_enqueue`. They are NULL if only older workers have served the kind.
    """

    __tablename__ = "kinds"

    name: str = Field(primary_key=True)
    dependency: str | None = None
    """The first of them, for workers of release 0.1.0, which know no more."""
    dependencies: list[str] | None = Field(default=None, sa_type=ARRAY(sa.Text))
    """All of them. None if only workers of release 0.1.0 serve the kind."""
    queue: str | None = None
    max_attempts: int | None = Field(default=None, sa_type=sa.SmallInteger)
    max_crashes: int | None = Field(default=None, sa_type=sa.SmallInteger)
    time_limit: float | None = Field(default=None, sa_type=sa.REAL)
    tells_end: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    """Whether the ends of its jobs are published; see `endings`."""
