"""The health of the hot tables and their indexes: reported, and mended where that disturbs nobody.

VACUUM and REINDEX CONCURRENTLY let everybody read and write meanwhile. Autovacuum does most of it; this is for what it
was kept from, for bloat that only a rebuild removes, and for what an interrupted rebuild left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import asyncpg
import structlog

from waybill.janitor.task import Batch, Tally, TaskTools
from waybill_janitor.settings import JanitorSettings

log: structlog.stdlib.BoundLogger = structlog.get_logger()

# Where autovacuum has been lately there is nothing to help with.
_TABLES = """
SELECT relname AS name, n_dead_tup AS dead, n_live_tup AS live,
       GREATEST(last_vacuum, last_autovacuum) > now() - interval '1 hour' AS vacuumed
  FROM pg_stat_user_tables WHERE schemaname = 'public' AND relname = ANY ($1::text[])
 ORDER BY relname
"""

# How large an index is beside how large its entries would make a fresh one, at nine tenths full. How many there are is
# known since somebody last counted them; before that nothing is said.
_INDEXES = """
SELECT index.relname AS name, pg_relation_size(index.oid) AS bytes, pg_index.indisvalid AS valid,
       CASE WHEN COALESCE(last_vacuum, last_autovacuum, last_analyze, last_autoanalyze) IS NULL THEN 0
            ELSE pg_relation_size(index.oid) / GREATEST(index.reltuples * (16 + width.bytes) / 0.9, 8192 * 2)
       END AS bloat
  FROM pg_index
  JOIN pg_class AS index ON index.oid = pg_index.indexrelid
  JOIN pg_class AS parent ON parent.oid = pg_index.indrelid
  JOIN LATERAL (SELECT COALESCE(sum(COALESCE(pg_stats.avg_width, 16)), 16) AS bytes
                  FROM pg_attribute
                  LEFT JOIN pg_stats ON pg_stats.tablename = parent.relname AND pg_stats.attname = pg_attribute.attname
                                    AND pg_stats.schemaname = 'public'
                 WHERE pg_attribute.attrelid = index.oid) AS width ON true
  JOIN pg_stat_user_tables AS counted ON counted.relid = parent.oid
 WHERE parent.relname = ANY ($1::text[]) AND parent.relnamespace = 'public'::regnamespace
 ORDER BY index.relname
"""

# Who keeps vacuum from removing anything.
_OLDEST = """
SELECT COALESCE(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8
  FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start IS NOT NULL
"""

_DONE = {"vacuum": "vacuumed", "reindex": "rebuilt", "drop": "dropped"}

_PATIENCE = "SET lock_timeout = '2s'"


@dataclass(frozen=True, slots=True)
class Thresholds:
    dead_rows: int = 50_000
    dead_share: float = 0.3
    index_bytes: int = 64 * 2**20
    bloat: float = 3.0


class Fix(NamedTuple):
    what: str
    """`vacuum`, `reindex` or `drop`."""
    name: str


class Health:
    name = "health"
    items = "tables to vacuum and indexes to rebuild"

    def __init__(self, tools: TaskTools, tables: Sequence[str], thresholds: Thresholds | None = None) -> None:
        """`tables` are the hot ones of the platform, the engine and the pipelines."""
        self._tools = tools
        self._tables = list(tables)
        self._limit = tools.settings_of(JanitorSettings).janitor_task_time_limit
        self._thresholds = thresholds or Thresholds()

    async def plan(self) -> AsyncIterator[Batch]:
        limit = self._thresholds
        async with self._tools.database.hot() as connection:
            tables = await connection.fetch(_TABLES, self._tables)
            indexes = await connection.fetch(_INDEXES, self._tables)
            oldest = await connection.fetchval(_OLDEST)
        found: dict[str, float] = {"oldest_transaction_seconds": round(oldest, 1)}
        for row in tables:
            found[f"{row['name']}_dead_rows"] = float(row["dead"])
        for row in indexes:
            found[f"{row['name']}_bytes"] = float(row["bytes"])
        fixes = [
            Fix("vacuum", row["name"])
            for row in tables
            if row["dead"] > limit.dead_rows
            and row["dead"] > limit.dead_share * (row["live"] + row["dead"])
            and not row["vacuumed"]
        ]
        # What REINDEX CONCURRENTLY leaves when it is interrupted has a name of its own.
        fixes += [Fix("drop", row["name"]) for row in indexes if not row["valid"] and "_ccnew" in row["name"]]
        fixes += [
            Fix("reindex", row["name"])
            for row in indexes
            if not _is_leftover(row["name"])
            and (not row["valid"] or (row["bytes"] > limit.index_bytes and row["bloat"] > limit.bloat))
        ]
        yield Batch([], found)
        for fix in fixes:
            yield Batch([fix])

    async def do(self, batch: Batch) -> Tally:
        (fix,) = batch.items
        if self._tools.database.pgbouncer:  # they need a session of their own, which a pooler does not give
            log.warning("not_mended", what=fix.what, name=fix.name, error="PgBouncer is in between")
            return Tally(found={"not_mended": 1.0})
        connection = await self._tools.database.open_connection()
        try:
            await connection.execute(_PATIENCE)
            await connection.execute(
                _statement(fix), timeout=self._tools.settings_of(JanitorSettings).janitor_task_time_limit
            )
        except (asyncpg.InsufficientPrivilegeError, asyncpg.LockNotAvailableError) as error:
            log.warning("not_mended", what=fix.what, name=fix.name, error=str(error))
            return Tally(found={"not_mended": 1.0})
        finally:
            await connection.close(timeout=5)
        log.info("mended", what=fix.what, name=fix.name)
        return Tally(Counter({_DONE[fix.what]: 1}))


def _is_leftover(name: str) -> bool:
    return "_ccnew" in name or "_ccold" in name


def _statement(fix: Fix) -> str:
    # Names from the catalogue, quoted: these statements take no parameters.
    name = '"' + fix.name.replace('"', '""') + '"'
    if fix.what == "vacuum":
        return f"VACUUM (ANALYZE, SKIP_LOCKED) public.{name}"
    if fix.what == "drop":
        return f"DROP INDEX CONCURRENTLY IF EXISTS public.{name}"
    return f"REINDEX INDEX CONCURRENTLY public.{name}"
