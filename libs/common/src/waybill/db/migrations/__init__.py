"""Schema changes, applied in order, each branch its own. Additive, and forward only in production."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection

from waybill.config import DatabaseUrl

PATIENCE = 3600.0
"""Seconds for which a migration that meets locks of others is repeated before it gives up."""

_one_at_a_time = threading.Lock()
"""Alembic's `op` is one for the whole process. Between processes, a lock in the database does the same."""


async def upgrade(url: str, targets: Collection[str] | None = None, *, patience: float = PATIENCE) -> None:
    """Apply `targets` and all that they need; by default every revision that is installed.

    Each revision is a transaction of its own: what was applied stays applied, and the next call continues after it.
    Safe to run from several places at once: one works, the others wait. A database that is ahead stays as it is.

    Raises SchemaMismatch for a database that this program cannot work with, and MigrationBlocked if other transactions
    hold locks for too long.
    """
    await asyncio.to_thread(_upgrade, url, targets, patience)


def _upgrade(url: str, targets: Collection[str] | None, patience: float) -> None:
    # Alembic is imported by those who migrate. Services import this package only to find the folder of the revisions.
    from waybill.db.migrations.runner import Runner

    with _one_at_a_time:
        asyncio.run(Runner(DatabaseUrl(url), patience).run(targets))
