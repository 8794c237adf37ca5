"""Schemas of the platform's own answers: who a visitor is, and what became of a request to forget them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from pydantic import Field

from waybill.web.schemas import Schema


class SessionSchema(Schema):
    signed_in: bool
    tenant: str
    permissions: list[str]


class ErasureSchema(Schema):
    """What became of a request to forget everything."""

    finished: bool = Field(description="Nothing is left. Otherwise the rest is removed later, running jobs last.")
    jobs: int
    files: int


class AuditEventSchema(Schema):
    """Somebody did something, or was refused."""

    id: uuid.UUID
    at: datetime
    actor: str = Field(
        description="A tenant (its key says which program), a session, a `visitor` without one, a command or a part of"
        " the system.",
        examples=["tenant:acme"],
    )
    key_id: uuid.UUID | None
    session_id: uuid.UUID | None
    address: str | None = Field(description="A /64 of IPv6 is one address.")
    request_id: uuid.UUID | None = Field(description="As in the answer's `X-Request-Id`.")
    action: str = Field(examples=["key.created"])
    subject: str | None = Field(examples=["key:019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b"])
    tenant: str | None = Field(description="Whose thing it was done to.")
    outcome: str = Field(description="`done` or `refused`.")
    times: int = Field(description="How often. Refusals are counted for some seconds, and then written as one event.")
    detail: dict[str, Any]
    position: int | None = Field(description="Its place in the chain; null until it is linked, some seconds later.")
    hash: str | None


class AuditSchema(Schema):
    events: list[AuditEventSchema]
    next: str | None = Field(description="If set, there is more: ask again with this as `cursor`.")


class AuditKeySchema(Schema):
    """Checks the signatures of the audit trail's checkpoints."""

    algorithm: str = Field(examples=["Ed25519"])
    fingerprint: str = Field(description="What a checkpoint that it signed says in `signed_with`.")
    public_key: str = Field(description="PEM. `waybill audit verify --key` takes a file with it.")
