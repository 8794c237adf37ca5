"""The floor: what a bare claim/finish loop in SQL does on this machine.

No fences, no history, no lanes, no limits: two statements per batch on a narrow table. Whatever makes a queue worth
trusting comes on top of this, and is measured against it.
"""

from __future__ import annotations

import asyncpg

_SCHEMA = """
CREATE TABLE floor_jobs (id bigint PRIMARY KEY, state smallint NOT NULL DEFAULT 0, payload jsonb NOT NULL DEFAULT '{}');
CREATE INDEX floor_ready ON floor_jobs (id) WHERE state = 0
"""

_CLAIM = """
UPDATE floor_jobs SET state = 1
 WHERE id = ANY (ARRAY(SELECT id FROM floor_jobs WHERE state = 0 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id
"""

_FINISH = "UPDATE floor_jobs SET state = 2 WHERE id = ANY ($1::bigint[])"


async def prepare(connection: asyncpg.Connection[asyncpg.Record], jobs: int) -> None:
    await connection.execute(_SCHEMA)
    await connection.execute("INSERT INTO floor_jobs (id) SELECT generate_series(1, $1::bigint)", jobs)
    await connection.execute("VACUUM ANALYZE floor_jobs")


async def drain(connection: asyncpg.Connection[asyncpg.Record], batch: int = 500) -> int:
    done = 0
    while rows := await connection.fetch(_CLAIM, batch):
        await connection.execute(_FINISH, [row["id"] for row in rows])
        done += len(rows)
    return done
