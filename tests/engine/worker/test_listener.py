"""An idle worker hears at once that there is something to do."""

from __future__ import annotations

from support import handlers
from support.patience import eventually
from support.workers import (
    StartWorker,
    all_ended,
    the_end,
)
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue


async def test_an_idle_worker_is_woken_by_the_commit(connection: Connection, start_worker: StartWorker) -> None:
    start_worker(poll_interval=60)
    first = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    await the_end(connection, first.id)  # it has started and is listening

    second = await enqueue(connection, NewJob(handlers.NOOP, "acme"))

    await eventually(lambda: all_ended(connection))
    assert (await the_end(connection, second.id))["state"] == "succeeded"


async def test_a_listener_that_lost_its_connection_listens_again(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(poll_interval=60)
    await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    await eventually(lambda: all_ended(connection))
    ears = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%'"
    deaf = await connection.fetchval(ears)
    await connection.execute("SELECT pg_terminate_backend($1)", deaf)

    async def listens() -> bool:
        return await connection.fetchval(ears) not in (None, deaf)

    await eventually(listens)
    await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    await eventually(lambda: all_ended(connection))
