"""The table behind idempotency: one row per tenant and key, from the first request until it expires.

`store` holds every statement on it.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel


class KeyState(StrEnum):
    IN_PROGRESS = "in_progress"
    """Somebody holds the key and works on the request."""
    DONE = "done"
    """The answer is stored and is given again."""
    FAILED = "failed"
    """The holder gave up; the same request may be tried again under the same key."""


def _time(*, nullable: bool = False) -> Any:
    # SQLModel's overloads do not know that `sa_type` takes an instance too.
    kind: Any = sa.DateTime(timezone=True)
    return Field(default=None, sa_type=kind) if nullable else Field(sa_type=kind)


class IdempotencyKey(SQLModel, table=True):
    __tablename__ = "idempotency_keys"

    tenant: str = Field(primary_key=True)
    """Keys of different tenants never meet."""
    key: str = Field(primary_key=True)
    fingerprint: str
    """What was asked: the same key with another fingerprint is a mistake of the caller's."""
    state: str
    attempt: int
    """Grows with every holder and never falls: the fence of the holder's last word."""
    answer: Any = Field(default=None, sa_type=JSONB, nullable=True)
    created_at: datetime = _time()
    """When the key was first seen."""
    stale_at: datetime = _time()
    """From then on a holder that has not finished may be replaced."""
    finished_at: datetime | None = _time(nullable=True)
    expires_at: datetime = _time()
    """From then on the key is free again, whatever happened under it."""

    __table_args__ = (
        sa.CheckConstraint("state IN ('in_progress', 'done', 'failed')", name="idempotency_keys_state_known"),
        sa.Index("idempotency_keys_expiring", "expires_at"),
    )
