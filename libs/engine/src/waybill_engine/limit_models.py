"""The tables of caps and rates: what limits how many jobs run at once, or start in some time."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field, SQLModel


class CapRow(SQLModel, table=True):
    """The most jobs of a tenant, of a kind, or of both that may run at once; see `waybill_engine.caps`."""

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
    """A kind whose cap an operator set or lifted; see `waybill_engine.caps`."""

    __tablename__ = "decided_caps"

    kind: str = Field(primary_key=True)


class RateRow(SQLModel, table=True):
    """How many jobs of a tenant, of a kind, or of both may start in some time; see `waybill_engine.rates`."""

    __tablename__ = "rates"

    id: int = Field(sa_column=sa.Column(sa.Integer, sa.Identity(always=True), primary_key=True))
    tenant: str | None = None
    kind: str | None = None
    most: int | None = None
    """None: an operator decided that there is no rate."""
    seconds: float
    burst: int
    spacing: int = Field(sa_type=sa.BigInteger)
    """Microseconds that each start pays for."""
    paid_up_to: datetime = Field(
        sa_column=sa.Column(sa.DateTime(timezone=True), nullable=False, server_default=sa.text("'epoch'"))
    )
    decided: bool = Field(sa_column=sa.Column(sa.Boolean, nullable=False, server_default=sa.false()))
    """An operator set or lifted it, so no default changes it."""

    __table_args__ = (
        sa.UniqueConstraint("tenant", "kind", name="rates_of_somebody", postgresql_nulls_not_distinct=True),
        sa.CheckConstraint("tenant IS NOT NULL OR kind IS NOT NULL", name="rates_name_somebody"),
        sa.CheckConstraint("most >= burst AND burst >= 1 AND seconds > 0 AND spacing >= 1", name="rates_let_through"),
    )
