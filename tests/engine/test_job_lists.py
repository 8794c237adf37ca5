"""Lists and counts cost the same however many jobs there are, and whatever Postgres believes about them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
import sqlalchemy as sa
from sqlmodel.ext.asyncio.session import AsyncSession

from support.engine import some_jobs, start_worker, take
from waybill.db import Database, driver
from waybill.db.database import Connection
from waybill_engine import State, queries, shelf
from waybill_engine.queue_counts import count_by_queue

MANY = 20_000

_FILL = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, created_at, finished_at)
SELECT waybill_new_id(), $2, $2, 'work', 'default', $3, '{}', 60, now(), now() - interval '1 hour'
  FROM generate_series(1, $1)
"""

# Of this connection, counted as it goes.
_ROWS_READ = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables"

LISTS: dict[str, dict[str, Any]] = {
    "all": {},
    **{f"state {state}": {"states": [state]} for state in State},
    "tenant": {"tenant": "rare"},
    "tenant that has nothing": {"tenant": "nobody"},
    "tenant, what waits": {"tenant": "rare", "states": [State.QUEUED]},
    "what went wrong": {"states": [State.FAILED, State.DEAD_LETTER, State.CANCELLED]},
}


async def fill(connection: Connection, count: int, tenant: str = "acme", state: str = "succeeded") -> None:
    await connection.execute(_FILL, count, tenant, state)


async def rare_jobs_below_many(connection: Connection) -> None:
    """A few jobs of each state and of one tenant, older than many others."""
    for state in ("failed", "cancelled", "dead_letter", "succeeded"):
        await fill(connection, 3, "rare", state)
    await some_jobs(connection, 3, tenant="rare")
    await take(connection, await start_worker(connection), 1)
    await some_jobs(connection, 3, tenant="rare", delay=60.0)
    await fill(connection, MANY)


async def believe_the_opposite(connection: Connection) -> None:
    """Have Postgres count when nearly all jobs are what is rare later."""
    await connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
    for state in ("failed", "cancelled", "dead_letter"):
        await fill(connection, 1000, "rare", state)
    await some_jobs(connection, 1000, tenant="rare")
    await connection.execute("ANALYZE jobs")
    await connection.execute("DELETE FROM jobs")


async def rows_read(session: AsyncSession) -> int:
    return int(await (await driver(session)).fetchval(_ROWS_READ))


@pytest.mark.parametrize("where", ["nothing is known", "the opposite is believed", "all is shelved"])
async def test_a_list_reads_no_more_rows_than_it_needs(db: Database, hot: Connection, where: str) -> None:
    if where == "the opposite is believed":
        await believe_the_opposite(hot)
    await rare_jobs_below_many(hot)
    if where == "all is shelved":
        ids = await shelf.page(hot, uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), 2 * MANY)
        assert await shelf.shelve(hot, ids, 0) > MANY
        await hot.execute("ANALYZE shelved_jobs")
    read: dict[str, int] = {}
    for name, wanted in LISTS.items():
        async with db.transaction() as session:
            before = await rows_read(session)
            await queries.list_jobs(session, limit=50, **wanted)
            read[name] = await rows_read(session) - before
    async with db.transaction() as session:
        before = await rows_read(session)
        await count_by_queue(session, most=100)
        read["counts"] = await rows_read(session) - before
    if where == "nothing is known":
        # Nearly all are that. Whoever does not know it sorts a table of this size, and reads a larger one backwards.
        del read[f"state {State.SUCCEEDED}"]
    assert {name: rows for name, rows in read.items() if rows > 1500} == {}


async def test_counts_end_at_a_bound_and_say_so(db: Database, hot: Connection) -> None:
    await some_jobs(hot, 7)
    await some_jobs(hot, 3, queue="night")
    await fill(hot, 6, state="failed")
    await fill(hot, 4, state="cancelled")
    async with db.transaction() as session:
        found = await count_by_queue(session, most=5)
    default, night = found["default"], found["night"]
    assert (default.counts[State.QUEUED], default.counts[State.FAILED], default.counts[State.CANCELLED]) == (5, 5, 4)
    assert default.at_least == {State.QUEUED, State.FAILED, State.SUCCEEDED}
    assert night.counts == {State.QUEUED: 3}


async def test_many_waiting_jobs_are_listed_newest_first(
    db: Database, hot: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few are sorted; with many, the newest are looked for from the end of the table."""
    jobs = await some_jobs(hot, 10)
    later = await some_jobs(hot, 10, delay=60.0)
    for few in (5, 100):
        monkeypatch.setattr("waybill_engine.job_lists._FEW", few)
        async with db.transaction() as session:
            listed = await queries.list_jobs(session, states=[State.QUEUED], limit=4)
            assert [job.id for job in listed] == jobs[:-5:-1]
            both = await queries.list_jobs(session, states=[State.SCHEDULED, State.QUEUED], limit=12)
            assert [job.id for job in both] == [*later[::-1], *jobs[:-3:-1]]
            assert await session.scalar(sa.select(sa.func.count()).select_from(sa.table("jobs"))) == 20
