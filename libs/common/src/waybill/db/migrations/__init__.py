"""Schema changes, applied in order. Additive, and forward only in production."""

from __future__ import annotations

import asyncio
import threading

from alembic import command
from alembic.config import Config
from alembic.util import CommandError

from waybill.config import DatabaseUrl
from waybill.db.schema import MIGRATIONS, SchemaMismatch

_one_at_a_time = threading.Lock()
"""Alembic keeps the run's context in module globals. Between processes, a lock in the database does the same."""


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    # Not a main option: those are interpolated and printed; this one holds a password.
    config.attributes["url"] = DatabaseUrl(url).sqlalchemy
    return config


async def upgrade(url: str, revision: str = "head") -> None:
    """Bring the schema to `revision`. Safe to run from several places at once: one works, the others wait."""
    await asyncio.to_thread(_upgrade, url, revision)


def _upgrade(url: str, revision: str) -> None:
    with _one_at_a_time:
        try:
            command.upgrade(_config(url), revision)
        except CommandError as error:
            raise SchemaMismatch(
                f"The database's schema cannot be migrated by this release ({error}). "
                "It was made by a newer Waybill: install that one."
            ) from error
