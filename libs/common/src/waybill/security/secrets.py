"""Secrets that all replicas share without configuration: the first replica that needs one creates it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.db.database import Connection

_MAKE = "INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, now()) ON CONFLICT (name) DO NOTHING"
_READ = "SELECT value FROM secrets WHERE name = $1"


async def has_secret(connection: Connection, name: str) -> bool:
    """Whether somebody has needed this one before."""
    return await connection.fetchval(_READ, name) is not None


async def shared_secret(connection: Connection, name: str) -> bytes:
    """32 bytes, the same for all replicas on this database."""
    value = await connection.fetchval(_READ, name)
    if value is None:
        await connection.execute(_MAKE, name, os.urandom(32))
        value = await connection.fetchval(_READ, name)
    return bytes(value)
