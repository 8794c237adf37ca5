"""A scan over everything there is: it takes as many runs as it needs, and starts again no sooner than is worth it.

All SQL on `janitor_places`, where a task's cursor is kept between runs. A cursor that came with a restored backup says
that another database was compared with another storage, so it counts for nothing: the scan begins anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import asyncpg

from waybill.janitor.task import NEXT_LOOK, RESUMED

if TYPE_CHECKING:
    from waybill.db.database import Connection

_SAVE = """
INSERT INTO janitor_places (task, place) VALUES ($1, $2) ON CONFLICT (task) DO UPDATE SET place = excluded.place
"""

_SAVED = "SELECT place FROM janitor_places WHERE task = $1"

# A restored dump has new tables, a recovered server a new timeline, a server set up anew another identifier.
_INCARNATION = """
SELECT concat_ws('-', (SELECT system_identifier FROM pg_control_system()),
                      (SELECT timeline_id FROM pg_control_checkpoint()),
                      (SELECT oid FROM pg_database WHERE datname = current_database()),
                      'janitor_places'::regclass::oid)
"""

# For a server that lets only its superuser read the control file.
_TABLE = "SELECT 'janitor_places'::regclass::oid::text"


@dataclass(frozen=True, slots=True)
class ScanCursor:
    """Where a scan stands."""

    now: datetime
    after: str = ""
    """The last thing looked at; empty at the beginning."""
    database: str = ""
    """Which incarnation of the database is looked at."""
    next_look: float = 0.0
    """Seconds until the next scan is due, because the last one ended not long ago."""

    @property
    def rests(self) -> bool:
        return self.next_look > 0

    @property
    def found(self) -> dict[str, float]:
        """What a report needs to tell a scan that found nothing from one that did not look, or not at everything."""
        if self.rests:
            return {NEXT_LOOK: self.next_look}
        return {RESUMED: 1.0} if self.after else {}

    def at(self, after: str) -> str:
        """The cursor to save for going on after this."""
        return json.dumps({"after": after, "database": self.database})

    def over(self) -> str:
        """The cursor to save when everything was looked at."""
        return json.dumps({"over": self.now.isoformat(), "database": self.database})


async def resume(connection: Connection, task: str, interval: float, *, anew: bool = False) -> ScanCursor:
    """Where the task's scan goes on; `interval` seconds lie between the end of one scan and the next.

    With `anew`, it begins anew now.
    """
    now: datetime = await connection.fetchval("SELECT now()")
    database = await _incarnation(connection)
    saved = json.loads(await connection.fetchval(_SAVED, task) or "{}")
    if anew or saved.get("database") != database:
        return ScanCursor(now, database=database)
    if over := saved.get("over"):
        rest = interval - (now - datetime.fromisoformat(over)).total_seconds()
        return ScanCursor(now, database=database, next_look=max(rest, 0.0))
    return ScanCursor(now, saved.get("after", ""), database)


async def _incarnation(connection: Connection) -> str:
    try:
        return str(await connection.fetchval(_INCARNATION))
    except asyncpg.InsufficientPrivilegeError:
        return str(await connection.fetchval(_TABLE))


async def save(connection: Connection, task: str, cursor: str) -> None:
    await connection.execute(_SAVE, task, cursor)
