"""Alembic's entry point: runs the migrations in one transaction, under a lock that admits one runner at a time."""

from __future__ import annotations

import asyncio

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from waybill.db.schema import INITIAL, RELEASE_0_1_0, refuse_unknown

_LOCK = 7_229_141
"""Any number, as long as it stays the same: the transaction-level advisory lock of all migration runs."""


def run(connection: Connection) -> None:
    context.configure(connection=connection)
    with context.begin_transaction():
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        at = context.get_context().get_current_heads()
        refuse_unknown(at)
        if RELEASE_0_1_0 in at:
            _adopt(connection)
        context.run_migrations()


def _adopt(connection: Connection) -> None:
    """Call a schema of release 0.1.0 what it is called since. With the upgrade that follows, or not at all."""
    refuse_unknown([INITIAL])
    connection.execute(text("DELETE FROM alembic_version"))
    context.get_context().stamp(context.script, INITIAL)


async def main() -> None:
    engine = create_async_engine(
        context.config.attributes["url"],
        poolclass=NullPool,
        connect_args={"statement_cache_size": 0, "prepared_statement_cache_size": 0},
    )
    async with engine.connect() as connection:
        await connection.run_sync(run)
    await engine.dispose()


asyncio.run(main())
