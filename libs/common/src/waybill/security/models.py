"""The tables behind keys, shared secrets and limits on how often somebody may ask."""

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
    """A key to a tenant's things. Its secret is shown once and kept only as a hash."""

    __tablename__ = "api_keys"

    id: uuid.UUID = Field(primary_key=True)
    tenant: str
    name: str
    """What a person calls it, to know which one to revoke."""
    hash: bytes
    """SHA-256. The secret has 256 bits of chance in it, so there is nothing to guess and nothing to slow down."""
    hint: str
    """The last characters of the secret, to tell keys apart."""
    permissions: list[str] = Field(sa_type=sa.ARRAY(sa.Text))
    created_at: datetime = _time(default=True)
    expires_at: datetime | None = _time(nullable=True)
    revoked_at: datetime | None = _time(nullable=True)
    last_used_at: datetime | None = _time(nullable=True)


class Secret(SQLModel, table=True):
    """What all replicas must agree on and nobody was told to configure."""

    __tablename__ = "secrets"

    name: str = Field(primary_key=True)
    value: bytes
    created_at: datetime = _time(default=True)


class RateLimit(SQLModel, table=True):
    """Where one subject stands; see `waybill.rate_limits`."""

    __tablename__ = "rate_limits"

    subject: str = Field(primary_key=True)
    tat: datetime = _time()
    """The theoretical arrival time: when everything taken so far would have been due at the steady rate."""
