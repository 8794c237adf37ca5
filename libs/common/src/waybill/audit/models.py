"""The tables of the audit trail."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

_LINKED = sa.text("position IS NOT NULL")
_UNLINKED = sa.text("position IS NULL")


def _time() -> Any:
    return Field(sa_type=sa.DateTime(timezone=True), sa_column_kwargs={"server_default": sa.func.now()})


class AuditRow(SQLModel, table=True):
    """One event. A trigger refuses every change but linking it, and every removal but that of a cut prefix."""

    __tablename__ = "audit_events"

    id: uuid.UUID = Field(primary_key=True)
    at: datetime = _time()
    """When the transaction began that did it."""
    actor: str
    key_id: uuid.UUID | None = None
    session_id: uuid.UUID | None = None
    address: str | None = None
    request_id: uuid.UUID | None = None
    action: str
    subject: str | None = None
    tenant: str | None = None
    outcome: str
    times: int = Field(default=1, sa_column_kwargs={"server_default": "1"})
    detail: dict[str, Any] = Field(default_factory=dict, sa_type=JSONB, sa_column_kwargs={"server_default": "{}"})
    position: int | None = Field(default=None, sa_type=sa.BigInteger)
    """Its place in the chain, counted from 1 without gaps. None until it is linked."""
    hash: bytes | None = None
    """SHA-256 of all of this and of the hash before it; see `waybill.audit.chain`."""

    __table_args__ = (
        sa.Index("audit_events_chain", "position", unique=True, postgresql_where=_LINKED),
        sa.Index("audit_events_unlinked", "at", "id", postgresql_where=_UNLINKED),
        sa.Index("audit_events_by_time", "at", "id"),
        sa.CheckConstraint("(position IS NULL) = (hash IS NULL)", name="audit_events_linked_whole"),
        sa.CheckConstraint("times > 0", name="audit_events_times_count"),
    )


class AuditCheckpoint(SQLModel, table=True):
    """A signed place in the chain: its `head`, and how far it was `cut`."""

    __tablename__ = "audit_checkpoints"

    name: str = Field(primary_key=True)
    position: int = Field(sa_type=sa.BigInteger)
    """Also the number of events up to there."""
    hash: bytes
    at: datetime = _time()
    signed_with: str
    """Which secret signed it: a fingerprint."""
    signature: bytes

    __table_args__ = (sa.CheckConstraint("name IN ('head', 'cut')", name="audit_checkpoints_known"),)
