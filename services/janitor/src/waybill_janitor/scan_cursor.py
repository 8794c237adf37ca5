"""A scan over everything there is: it takes as many runs as it needs, and starts again no sooner than is worth it.

All SQL on `janitor_places`, where a task's cursor is kept between runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.db.database import Connection

_SAVE = """
INSERT INTO janitor_places (task, place) VALUES ($1, $2) ON CONFLICT (task) DO UPDATE SET place = excluded.place
"""

_SAVED = "SELECT place FROM janitor_places WHERE task = $1"


@dataclass(frozen=True, slots=True)
class ScanCursor:
    """Where a scan stands."""

    now: datetime
    after: str = ""
    """The last thing looked at; empty at the beginning."""
    rests: bool = False
    """The last scan ended not long ago."""

    def at(self, after: str) -> str:
        """The cursor to save for going on after this."""
        return json.dumps({"after": after})

    def over(self) -> str:
        """The cursor to save when everything was looked at."""
        return json.dumps({"over": self.now.isoformat()})


async def resume(connection: Connection, task: str, interval: float) -> ScanCursor:
    """Where the task's scan goes on; `interval` seconds lie between the end of one scan and the next."""
    now: datetime = await connection.fetchval("SELECT now()")
    saved = json.loads(await connection.fetchval(_SAVED, task) or "{}")
    if over := saved.get("over"):
        return ScanCursor(now, rests=(now - datetime.fromisoformat(over)).total_seconds() < interval)
    return ScanCursor(now, saved.get("after", ""))


async def save(connection: Connection, task: str, cursor: str) -> None:
    await connection.execute(_SAVE, task, cursor)
