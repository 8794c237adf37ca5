"""A worker becomes the relay when it is asked to, and stops when there is little to pass on."""

from __future__ import annotations

import asyncpg

from support import handlers
from support.engine import Connect
from support.patience import eventually
from support.workers import StartWorker, the_end
from waybill_engine import NewJob, enqueue

_ON = "SELECT waybill_relay_is_on()"


async def test_a_worker_relays_while_many_announce_at_once_and_not_for_longer(
    connect: Connect, start_worker: StartWorker
) -> None:
    mine, other = await connect(), await connect()
    start_worker(poll_interval=60.0)
    start_worker(poll_interval=60.0)

    async def relaying() -> bool:
        return bool(await other.fetchval(_ON))

    async with mine.transaction():
        await enqueue(mine, NewJob(handlers.NOOP, "acme"))

        async def asked() -> bool:
            await enqueue(other, NewJob(handlers.NOOP, "other"))  # not alone
            return await relaying()

        await eventually(asked)
        relayed = await enqueue(other, NewJob(handlers.NOOP, "late"))
        assert (await the_end(other, relayed.id))["state"] == "succeeded"

    async def quiet() -> bool:
        return not await relaying()

    await eventually(quiet)
    alone = await enqueue(mine, NewJob(handlers.NOOP, "alone"))
    assert (await the_end(mine, alone.id))["state"] == "succeeded"
    assert await mine.fetchval("SELECT count(*) FROM announcements") == 0
    assert isinstance(mine, asyncpg.Connection)
