"""The table of idempotency keys: one row per tenant and key, from the first request until it expires.

`store` has all statements on it.
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
    """A process works on the request."""
    DONE = "done"
    """The answer is stored and is returned again."""
    FAILED = "failed"
    """The work failed. The same request may be sent again with the same key."""


def _time(*, nullable: bool = False) -> Any:
    # SQLModel's type hints do not allow an instance for `sa_type`, but it works.
    kind: Any = sa.DateTime(timezone=True)
    return Field(default=None, sa_type=kind) if nullable else Field(sa_type=kind)


class IdempotencyKey(SQLModel, table=True):
    __tablename__ = "idempotency_keys"

    tenant: str = Field(primary_key=True)
    """Each tenant has its own keys."""
    key: str = Field(primary_key=True)
    fingerprint: str
    """Identifies the request. The same key with another fingerprint is the caller's mistake."""
    state: str
    attempt: int
    """Grows with every process that works on the key. It fences the final write."""
    answer: Any = Field(default=None, sa_type=JSONB, nullable=True)
    created_at: datetime = _time()
    """When the key was first seen."""
    stale_at: datetime = _time()
    """From then on, another process may take over if the work is not finished."""
    finished_at: datetime | None = _time(nullable=True)
    expires_at: datetime = _time()
    """From then on, the key is free again."""

    __table_args__ = (
        sa.CheckConstraint("state IN ('in_progress', 'done', 'failed')", name="idempotency_keys_state_known"),
        sa.Index("idempotency_keys_expiring", "expires_at"),
    )
