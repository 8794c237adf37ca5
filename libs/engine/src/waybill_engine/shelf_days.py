"""The days of the shelf: a partition of each of its tables for every day, dropped whole when all in it is past its age.

A day is that of the jobs' ids, which is the day on which they were enqueued by the clock of whoever enqueued them. It
only says where a job lies; whether its time is over is judged by the database's times. Ids make a job's partition known
to whoever looks it up, and lists read the newest partition first.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    from waybill.db.database import Connection

FIRST, LAST = date(2020, 1, 1), date(2099, 12, 31)
"""An id of another day does not carry a time."""

SLACK_DAYS = 2.0
"""How much longer than its age a job may lie on the shelf, so that its day can be dropped as a whole. Jobs that then
still keep their day from being dropped let the others go one by one."""

_KNOWN = """
SELECT child.relname AS name
  FROM pg_inherits
  JOIN pg_class AS child ON child.oid = inhrelid
 WHERE inhparent = 'shelved_jobs'::regclass AND NOT inhdetachpending
 ORDER BY child.relname
"""

_PATIENCE = "SET LOCAL lock_timeout = '1s'"

# Attaching lets others read and write meanwhile; CREATE ... PARTITION OF would have to wait until nobody reads.
_MAKE = """
CREATE TABLE {table}_{day} (LIKE {table} INCLUDING DEFAULTS INCLUDING INDEXES)
    WITH (autovacuum_vacuum_insert_scale_factor = 0.5);
ALTER TABLE {table} ATTACH PARTITION {table}_{day} FOR VALUES FROM ('{first}') TO ('{end}')
"""

_TABLES = ("shelved_jobs", "shelved_job_events")

# What keeps a day: a job that is not past its tenant's age, that is under a legal hold, that has a published file, or
# of which a pipeline has rows, which must go with it one by one.
_ALL_PAST = """
SELECT NOT EXISTS (
           SELECT FROM shelved_jobs
             LEFT JOIN retention_ages ON retention_ages.tenant = shelved_jobs.tenant AND rule = 'jobs'
             LEFT JOIN tenants ON tenants.name = shelved_jobs.tenant
            WHERE shelved_jobs.id >= $1 AND shelved_jobs.id < $2
              AND (finished_at > now() - COALESCE(days, $3) * interval '1 day'
                   OR tenants.hold_at IS NOT NULL OR $4::text[] IS NULL OR kind = ANY ($4)))
   AND NOT EXISTS (
           SELECT FROM job_artefacts JOIN shelved_jobs ON shelved_jobs.id = job_artefacts.job_id
            WHERE job_artefacts.job_id >= $1 AND job_artefacts.job_id < $2
              AND shelved_jobs.id >= $1 AND shelved_jobs.id < $2)
"""

LOCK = "hashtextextended('waybill shelf', 0)"
"""The advisory lock of the shelf, as SQL. See `waybill_engine.shelf`."""

_LOCK_SHELF = f"SELECT pg_advisory_xact_lock({LOCK})"


@dataclass(frozen=True, slots=True)
class Day:
    day: date

    @property
    def first(self) -> uuid.UUID:
        return _first_id(self.day)

    @property
    def end(self) -> uuid.UUID:
        return _first_id(self.day + timedelta(days=1))

    @property
    def name(self) -> str:
        return f"{self.day:%Y%m%d}"


async def known(connection: Connection) -> list[Day]:
    """The days that there are, the oldest first."""
    names = [row["name"] for row in await connection.fetch(_KNOWN)]
    return [Day(datetime.strptime(name.rpartition("_")[2], "%Y%m%d").date()) for name in names]  # noqa: DTZ007


async def make(connection: Connection, days: Collection[date]) -> None:
    """Make the partitions of these days, as far as they are missing."""
    there = {one.day for one in await known(connection)}
    for day in [Day(day) for day in sorted(set(days) - there)]:
        async with connection.transaction():
            await connection.execute(_PATIENCE)
            for table in _TABLES:
                await connection.execute(_MAKE.format(table=table, day=day.name, first=day.first, end=day.end))


async def past(connection: Connection, day: Day, default_days: float, kinds_with_rows: Sequence[str] | None) -> bool:
    """Whether everything of a day may go at once. Without `kinds_with_rows`, only a day with nothing in it may."""
    return bool(await connection.fetchval(_ALL_PAST, day.first, day.end, default_days, kinds_with_rows))


async def drop(connection: Connection, day: Day) -> bool:
    """Drop a day in the caller's transaction; False if somebody reads too long to wait for, or it is gone already.

    Only whoever holds the janitor's lease shelves jobs, so nothing comes to a day that was found past.
    """
    try:
        async with connection.transaction():
            await connection.execute(_PATIENCE)
            await connection.execute(_LOCK_SHELF)
            await connection.execute(f"DROP TABLE {', '.join(f'{table}_{day.name}' for table in _TABLES)}")
    except (asyncpg.LockNotAvailableError, asyncpg.UndefinedTableError):
        return False
    return True


def _first_id(day: date) -> uuid.UUID:
    # Without the bits of the version, so that no id of the day is below it.
    return uuid.UUID(int=int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000) << 80)
