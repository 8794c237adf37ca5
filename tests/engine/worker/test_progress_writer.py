"""The progress that a handler reports is written, also if somebody had locked the job when it was first tried."""

from __future__ import annotations

import asyncio
import contextlib

from support.engine import Connect, row, running_job
from support.patience import eventually
from waybill.db import Database
from waybill.db.database import Connection
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.progress_writer import ProgressWriter


async def test_what_a_lock_kept_from_being_written_is_written_later(
    db: Database, hot: Connection, connect: Connect
) -> None:
    locked, free = (await running_job(hot))[1], (await running_job(hot))[1]
    writer = ProgressWriter(db, DatabaseHealth())
    writing = asyncio.create_task(writer.run())
    other = await connect()
    async with other.transaction():
        await other.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", locked.id)
        writer.note(locked, 0.5, "page 2 of 4")
        writer.note(free, 0.25, None)

        async def others_are_written() -> bool:
            return bool((await row(hot, free.id))["progress"] == 0.25)

        await eventually(others_are_written)

    async def all_is_written() -> bool:
        return bool((await row(hot, locked.id))["progress_message"] == "page 2 of 4")

    await eventually(all_is_written)
    writing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await writing
