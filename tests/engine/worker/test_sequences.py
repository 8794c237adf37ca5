"""Real workers run the jobs of a sequence one after the other."""

from __future__ import annotations

import itertools

from support import handlers
from support.engine import Connect, count, find_contradictions
from support.patience import eventually
from support.workers import StartWorker
from waybill.db.database import Connection
from waybill_engine import NewJob, SequenceKey, enqueue


async def test_workers_run_a_sequence_in_order_and_take_the_turns_that_others_missed(
    connection: Connection, connect: Connect, start_worker: StartWorker
) -> None:
    """They poll too seldom to find anything that way."""
    start_worker(poll_interval=60)
    start_worker(poll_interval=60)

    async def add(on: Connection, key: str, at_once: int) -> None:
        await enqueue(on, NewJob(handlers.EFFECT, "acme", {"seconds": 0.001}, sequence=SequenceKey(key, at_once)))

    other = await connect()
    async with other.transaction():
        await add(other, "one", 1)
        for _ in range(15):
            await add(connection, "one", 1)  # missed turns, all of them
            await add(connection, "three", 3)

        async def three_has_ended() -> bool:
            return await count(connection, "sequence_key = 'three' AND state = 'succeeded'") == 15

        await eventually(three_has_ended)
        assert await count(connection, "sequence_key = 'one' AND state <> 'scheduled'") == 0

    async def all_have_ended() -> bool:
        return await count(connection, "state = 'succeeded'") == 31

    await eventually(all_have_ended)
    rows = await connection.fetch(
        "SELECT started_at, finished_at FROM jobs WHERE sequence_key = 'one' ORDER BY sequence_position"
    )
    assert all(after["started_at"] >= before["finished_at"] for before, after in itertools.pairwise(rows))
    assert await find_contradictions(connection) == []
