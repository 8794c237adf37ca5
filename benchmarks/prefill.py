"""Writes millions of rows on the server itself, as enqueuing and running the jobs would leave them."""

from __future__ import annotations

from benchmarks.handlers import NOOP
from waybill.db.database import Connection

TENANTS = 20
"""The number of tenants is always the same, so that tables differ only in their number of rows."""

_QUEUED = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, max_attempts, time_limit)
SELECT uuidv7(), 'tenant ' || n % $4, 'bench', $2, $3, 'queued', '{}', 1, 300
  FROM generate_series(1, $1::int) AS n
"""

_FINISHED = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, max_attempts, time_limit, lease_token, progress,
                  started_at, finished_at)
SELECT uuidv7(), 'tenant ' || n % $4, 'bench', $2, $3, 'succeeded', '{}', 1, 300, 1, 1, now(), now()
  FROM generate_series(1, $1::int) AS n
"""


async def queued(connection: Connection, rows: int) -> None:
    await connection.execute(_QUEUED, rows, NOOP.name, NOOP.queue, TENANTS, timeout=600)


async def finished(connection: Connection, rows: int) -> None:
    await connection.execute(_FINISHED, rows, NOOP.name, NOOP.queue, TENANTS, timeout=600)
