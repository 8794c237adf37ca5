"""The tables of API keys, ended sessions, shared secrets and rate limits."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Field, SQLModel


def _time(*, nullable: bool = False, default: bool = False) -> Any:
    kind: Any = sa.DateTime(timezone=True)
    if nullable:
        return Field(default=None, sa_type=kind)
    return Field(sa_type=kind, sa_column_kwargs={"server_default": sa.func.now()} if default else {})


class ApiKey(SQLModel, table=True):
    """An API key of a tenant. Its secret is shown once, and only its hash is stored."""

    __tablename__ = "api_keys"

    id: uuid.UUID = Field(primary_key=True)
    tenant: str
    name: str
    """A name for people, so that they know which key to revoke."""
    hash: bytes
    """SHA-256. The secret has 256 random bits and cannot be guessed, so the hash need not be slow."""
    hint: str
    """The last characters of the secret, to tell keys apart."""
    permissions: list[str] = Field(sa_type=sa.ARRAY(sa.Text))
    created_at: datetime = _time(default=True)
    expires_at: datetime | None = _time(nullable=True)
    revoked_at: datetime | None = _time(nullable=True)
    last_used_at: datetime | None = _time(nullable=True)


class EndedSession(SQLModel, table=True):
    """A session that was ended before its cookie expired; see `waybill.security.sessions`."""

    __tablename__ = "ended_sessions"

    session_id: uuid.UUID = Field(primary_key=True)
    until: datetime = _time()
    """When every cookie of the session has expired, so that the row has served."""


class Secret(SQLModel, table=True):
    """A secret that all replicas share and nobody needs to configure."""

    __tablename__ = "secrets"

    name: str = Field(primary_key=True)
    value: bytes
    created_at: datetime = _time(default=True)


class RateLimit(SQLModel, table=True):
    """How much of its limit a subject has used; see `waybill.rate_limits`."""

    __tablename__ = "rate_limits"

    subject: str = Field(primary_key=True)
    tat: datetime = _time()
    """The theoretical arrival time: when everything taken so far would be due at the steady rate."""
