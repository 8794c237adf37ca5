"""Alembic's entry point: runs the migrations in one transaction, under a lock that admits one runner at a time."""

from __future__ import annotations

import asyncio

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from waybill.db.models import compare_type, metadata

_LOCK = 7_229_141
"""Any number, as long as it stays the same: the transaction-level advisory lock of all migration runs."""


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, compare_type=compare_type)
    with context.begin_transaction():
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        context.run_migrations()


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
