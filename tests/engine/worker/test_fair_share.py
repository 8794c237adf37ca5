"""A tenant's hundred thousand files and another's single one, in front of real workers."""

from __future__ import annotations

import uuid

from support import handlers
from support.claimants import fill
from support.patience import eventually
from support.workers import StartWorker
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue

SLOTS = 4
FEW = 4
"""Claims, each of them as large as the slots and the little that is held in advance, that may be on their way while the
news of a job travels. Without fair shares it would be all hundred thousand."""


async def test_one_file_behind_a_hundred_thousand_starts_after_a_few(
    connection: Connection, start_worker: StartWorker
) -> None:
    await fill(connection, 100_000, tenant="a", kind="effect", payload='{"seconds": 0.01}')
    for _ in range(2):
        start_worker(worker_concurrency=SLOTS)

    async def well_under_way() -> bool:
        return bool(await connection.fetchval("SELECT count(DISTINCT lease_owner) = 2 FROM jobs")) and bool(
            await connection.fetchval("SELECT count(*) > 200 FROM public.effects")
        )

    await eventually(well_under_way, within=60)
    # Another tenant's, and another kind of the same tenant's.
    for single in (NewJob(handlers.EFFECT, "b"), NewJob(handlers.NOOP, "a")):
        await enqueue(connection, single)

        async def succeeded(job_id: uuid.UUID = single.id) -> bool:
            return bool(await connection.fetchval("SELECT state = 'succeeded' FROM jobs WHERE id = $1", job_id))

        await eventually(succeeded)
        earlier = await connection.fetchval(
            """
            SELECT count(*) FROM jobs, (SELECT created_at, started_at FROM jobs WHERE id = $1) AS single
             WHERE jobs.started_at > single.created_at AND jobs.started_at < single.started_at
            """,
            single.id,
        )
        print(earlier, "jobs started between its commit and its start")
        assert earlier <= FEW * 2 * SLOTS
