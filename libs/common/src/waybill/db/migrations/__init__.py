"""Schema changes, applied in order, each branch its own. Additive, and forward only in production."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from waybill.config import DatabaseUrl
from waybill.db.branches import branches
from waybill.db.schema import MIGRATIONS

if TYPE_CHECKING:
    from alembic.config import Config

_one_at_a_time = threading.Lock()
"""Alembic keeps the run's context in module globals. Between processes, a lock in the database does the same."""


# Alembic is imported by those who migrate: services import this package only to find the folder of the revisions.


def _config(url: str) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", _plain(str(MIGRATIONS)))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", _plain("\n".join(branch.folder for branch in branches())))
    # Not a main option: those are interpolated and printed; this one holds a password.
    config.attributes["url"] = DatabaseUrl(url).sqlalchemy
    return config


def _plain(text: str) -> str:
    """Not to be interpolated."""
    return text.replace("%", "%%")


async def upgrade(url: str, target: str = "heads") -> None:
    """Bring the schema to `target`, by default all installed branches to their last revision.

    Safe to run from several places at once: one works, the others wait. Raises SchemaMismatch for a database that is
    ahead of this program or older than release 0.1.0.
    """
    await asyncio.to_thread(_upgrade, url, target)


def _upgrade(url: str, target: str) -> None:
    from alembic import command

    with _one_at_a_time:
        command.upgrade(_config(url), target)
