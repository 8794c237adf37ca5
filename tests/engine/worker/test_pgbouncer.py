"""Behind PgBouncer in transaction mode there are no prepared statements and no LISTEN: polling alone does it."""

from __future__ import annotations

import pytest

from support import handlers
from support.patience import eventually
from support.pgbouncer import installed, pgbouncer
from support.workers import StartWorker, all_ended, counts
from waybill.config import CommonSettings
from waybill.db import Database
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_many

pytestmark = pytest.mark.skipif(not installed(), reason="pgbouncer is not installed (Debian's package pgbouncer)")


async def test_workers_behind_pgbouncer_complete_everything_by_polling(
    connection: Connection, start_worker: StartWorker, database_url: str
) -> None:
    with pgbouncer(database_url) as pooled:
        for _ in range(2):
            start_worker(pooled, database_pgbouncer="true", poll_interval=0.2)
        await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme") for _ in range(300)])
        await enqueue_many(connection, [NewJob(handlers.FAIL, "acme", {"times": 1}) for _ in range(20)])

        await eventually(lambda: all_ended(connection), within=60)

    assert await counts(connection) == {"succeeded": 320}
    assert await connection.fetchval("SELECT count(*) FROM effects") == 300
    # Nobody listened, and nobody left planner settings behind for strangers.
    listening = "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE 'listen%' AND datname = current_database()"
    assert await connection.fetchval(listening) == 0


async def test_jobs_can_be_enqueued_through_pgbouncer(connection: Connection, database_url: str) -> None:
    with pgbouncer(database_url) as pooled:
        settings = CommonSettings.model_validate({"database_url": pooled, "database_pgbouncer": True})
        db = await Database.connect(settings)
        async with db.transaction() as session:
            await enqueue(session, NewJob(handlers.NOOP, "acme"))
        async with db.hot() as hot:
            await enqueue(hot, NewJob(handlers.NOOP, "acme"))
        await db.close()

    assert await counts(connection) == {"queued": 2}
