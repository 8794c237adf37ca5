"""The tables of what an operator decided about tenants."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field, SQLModel


class Tenant(SQLModel, table=True):
    """What an operator decided about a tenant. A tenant without a row has weight 1 and no priority to give."""

    __tablename__ = "tenants"

    name: str = Field(primary_key=True)
    weight: float = Field(default=1.0, sa_type=sa.REAL, sa_column_kwargs={"server_default": "1"})
    """Its share beside others': 2 gets twice the work done of 1."""
    top_priority: int = Field(default=0, sa_type=sa.SmallInteger, sa_column_kwargs={"server_default": "0"})
    """The highest priority its jobs may have. Above 0 is an operator's grant."""
    hold_at: datetime | None = Field(default=None, sa_type=sa.DateTime(timezone=True))
    """Under legal hold since then: nothing of it is removed. See `waybill.retention.holds`."""
    hold_reason: str | None = None

    # For release 0.1.0, kept in step with `retention_ages` by triggers. They go with the next release.
    pdf_ttl_days: float | None = Field(default=None, sa_type=sa.REAL)
    xml_ttl_days: float | None = Field(default=None, sa_type=sa.REAL)
    xml_on_download: bool | None = None
    events_ttl_days: float | None = Field(default=None, sa_type=sa.REAL)
    jobs_ttl_days: float | None = Field(default=None, sa_type=sa.REAL)

    __table_args__ = (sa.CheckConstraint("weight > 0", name="tenants_weight_counts"),)


class RetentionAge(SQLModel, table=True):
    """How long a tenant's things are kept under one retention rule, where that differs from the setting."""

    __tablename__ = "retention_ages"

    tenant: str = Field(primary_key=True)
    rule: str = Field(primary_key=True)
    days: float = Field(sa_type=sa.REAL)

    __table_args__ = (sa.CheckConstraint("days >= 0 AND days <= 36500", name="retention_ages_days_count"),)
