"""The schema and the rows of a database, for comparisons."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import asyncpg
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlmodel import AutoString, SQLModel

from waybill.config import DatabaseUrl
from waybill.db import Database
from waybill.db.branches import import_models
from waybill_cli.local.postgres import bundled_binaries


def dumped(url: str) -> str:
    """The schema as pg_dump writes it. Its newest version reads all older servers."""
    program = bundled_binaries(18) / "pg_dump"
    arguments = ["--schema-only", "--schema=public", "--no-owner", url]
    text = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    # These lines contain a different key in each dump.
    return "\n".join(line for line in text.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))


async def differences_from_models(url: str) -> list[object]:
    """How the database differs from the models of the platform, the engine and every installed pipeline."""
    import_models()

    def compare(connection: sa.Connection) -> list[object]:
        options = {"compare_type": _compare_type, "compare_server_default": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), SQLModel.metadata))

    db = Database(DatabaseUrl(url))
    try:
        async with db.engine.connect() as connection:
            return await connection.run_sync(compare)
    finally:
        await db.close()


def _compare_type(_context: Any, _column: Any, _model_column: Any, found: Any, declared: Any) -> bool | None:
    """Treat SQLModel's `varchar` without a length like the migrations' `text`."""
    both_text = isinstance(found, sa.Text) and isinstance(declared, AutoString) and str(declared) == "VARCHAR"
    return False if both_text else None


Rows = dict[str, list[dict[str, Any]]]
"""Rows by table, as JSON."""


def same_columns(rows: Rows, others: Rows) -> Rows:
    """`rows`, without tables and columns that `others` does not have: a migration may add some."""
    return {
        table: [{name: row[name] for name in others[table][0]} for row in rows[table]]
        for table in rows
        if others.get(table)
    }


async def all_rows(url: str) -> Rows:
    """Every row of every table."""
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
        )
        return {
            name: [
                json.loads(row[0]) for row in await connection.fetch(f"SELECT to_jsonb(t) FROM {name} AS t ORDER BY 1")
            ]
            for (name,) in tables
        }
    finally:
        await connection.close()
