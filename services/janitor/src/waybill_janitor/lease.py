"""Only one janitor works at a time: a row has an expiry and a token that grows whenever it is taken.

Each step is one statement, so it works behind PgBouncer too. A janitor that was killed keeps others away until its
lease has run out. Two at once would do no harm, only each other's work.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from waybill.errors import LeaseLost

if TYPE_CHECKING:
    from waybill.db import Database
    from waybill.db.database import Connection

NAME = "janitor"
TTL = 120.0
"""Seconds. Renewed with every batch; none takes nearly as long."""

_TAKE = """
INSERT INTO janitor_lease AS held (name, token, holder, expires_at)
VALUES ($1, 1, $2, now() + $3 * interval '1 second')
    ON CONFLICT (name) DO UPDATE SET token = held.token + 1, holder = excluded.holder, expires_at = excluded.expires_at
    WHERE held.expires_at <= now()
RETURNING token
"""

_RENEW = """
UPDATE janitor_lease SET expires_at = now() + $3 * interval '1 second' WHERE name = $1 AND token = $2 RETURNING token
"""

_RELEASE = "UPDATE janitor_lease SET expires_at = now() WHERE name = $1 AND token = $2"

_HOLDER = "SELECT holder FROM janitor_lease WHERE name = $1 AND expires_at > now()"


def myself() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


class JanitorLease:
    def __init__(self, token: int) -> None:
        self._token = token

    @classmethod
    async def take(cls, database: Database) -> JanitorLease | None:
        """The lease, or None while another has it."""
        async with database.hot() as connection:
            token = await connection.fetchval(_TAKE, NAME, myself(), TTL)
        return cls(token) if token is not None else None

    async def renew(self, connection: Connection) -> None:
        """LeaseLost if it ran out and another took it."""
        if await connection.fetchval(_RENEW, NAME, self._token, TTL) is None:
            raise LeaseLost("Another janitor has taken over.")

    async def release(self, database: Database) -> None:
        async with database.hot() as connection:
            await connection.execute(_RELEASE, NAME, self._token)


async def holder(database: Database) -> str | None:
    """Who cleans up just now."""
    async with database.hot() as connection:
        found = await connection.fetchval(_HOLDER, NAME)
    return str(found) if found is not None else None
