"""The floor: a bare loop of claim and finish in SQL, which shows the most that this machine can do.

It runs two statements per batch on a narrow table, without fences, history, lanes or time limits. Everything that makes
a queue reliable comes on top and is measured against this.
"""

from __future__ import annotations

import asyncio
import json

import asyncpg
import uvloop

from benchmarks import program

_SCHEMA = """
CREATE TABLE floor_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state smallint NOT NULL DEFAULT 0,
    payload jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX floor_ready ON floor_jobs (id) WHERE state = 0
"""

CLAIM = """
UPDATE floor_jobs SET state = 1
 WHERE id = ANY (ARRAY(SELECT id FROM floor_jobs WHERE state = 0 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id, payload
"""

FINISH = "UPDATE floor_jobs SET state = 2 WHERE id = ANY ($1::bigint[])"

_FILL = "INSERT INTO floor_jobs (payload) SELECT '{}' FROM generate_series(1, $1::bigint)"

_FEED = """
WITH new AS (INSERT INTO floor_jobs (payload) VALUES (jsonb_build_object('sample', $1::int)))
SELECT pg_notify('floor', '')
"""


async def prepare() -> None:
    connection = await asyncpg.connect(program.URL)
    await connection.execute(_SCHEMA)


async def fill(jobs: int) -> None:
    connection = await asyncpg.connect(program.URL)
    await connection.execute(_FILL, jobs)


async def work() -> None:
    connection = await asyncpg.connect(program.URL)
    notified = asyncio.Event()
    await connection.add_listener("floor", lambda *_: notified.set())
    while True:
        notified.clear()
        while rows := await connection.fetch(CLAIM, program.SETTINGS["batch"]):
            for row in rows:
                if row["payload"] != "{}":
                    program.handler_started(json.loads(row["payload"])["sample"])
            await connection.execute(FINISH, [row["id"] for row in rows])
        await notified.wait()


async def feed() -> None:
    connection = await asyncpg.connect(program.URL)
    await program.feed(connection.execute, lambda sample: connection.execute(_FEED, sample))


if __name__ == "__main__":
    program.main(uvloop.run, prepare=prepare, fill=fill, work=work, feed=feed)
