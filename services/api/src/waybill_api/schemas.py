"""Schemas of the platform's own answers: who a visitor is, and what became of a request to forget them."""

from __future__ import annotations

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
