"""A pass over everything there is, in as many runs as it takes, and not more often than is worth it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill_janitor import places

if TYPE_CHECKING:
    from waybill.db.database import Connection


@dataclass(frozen=True, slots=True)
class Pass:
    """Where a pass stands."""

    now: datetime
    after: str = ""
    """The last thing looked at; empty at the beginning."""
    rests: bool = False
    """The last pass ended not long ago."""

    def at(self, after: str) -> str:
        """The place to remember for going on after this."""
        return json.dumps({"after": after})

    def over(self) -> str:
        """The place to remember when all was looked at."""
        return json.dumps({"over": self.now.isoformat()})


async def resume(connection: Connection, task: str, interval: float) -> Pass:
    now: datetime = await connection.fetchval("SELECT now()")
    known = json.loads(await places.place(connection, task) or "{}")
    if over := known.get("over"):
        return Pass(now, rests=(now - datetime.fromisoformat(over)).total_seconds() < interval)
    return Pass(now, known.get("after", ""))
