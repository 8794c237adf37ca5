"""Can Postgres write? A server that answers may be a standby, refuse to write, or have no room left on its disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    from waybill.db.database import Connection

# A primary that was replaced is a standby, or somebody keeps it from writing until it is one.
_IS_READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"

# A message for logical decoding that nobody reads: a record in the log, written to the disk and to synchronous standbys
# like every commit, and nothing else. There is no table that would grow, and no row for which replicas would wait.
_WRITE_TO_LOG = "SELECT pg_logical_emit_message(true, 'waybill', '')"

# The log has space for a long time after the disk is full, because its files are used again and again. So this makes
# more rows than may be kept in memory, which puts a file of some 140 KB beside the tables for a moment.
_WRITE_TO_DISK = "SELECT count(*) FROM generate_series(1, 10000)"


async def refuse_read_only(connection: Connection) -> None:
    """Raise ReadOnlySQLTransactionError if this server does not write."""
    if await connection.fetchval(_IS_READ_ONLY):
        raise asyncpg.ReadOnlySQLTransactionError("the server is a standby, or set to read only")


async def check_writable(connection: Connection) -> None:
    """Raise unless a commit reaches the disk and the disk has room."""
    await refuse_read_only(connection)
    async with connection.transaction():
        await connection.execute("SET LOCAL work_mem = '64kB'")
        await connection.execute(_WRITE_TO_DISK)
        await connection.execute(_WRITE_TO_LOG)
