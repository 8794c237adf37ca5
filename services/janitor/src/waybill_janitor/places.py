"""Where a task that looks at everything goes on in the next run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.db.database import Connection

_REMEMBER = """
INSERT INTO janitor_places (task, place) VALUES ($1, $2) ON CONFLICT (task) DO UPDATE SET place = excluded.place
"""

_PLACE = "SELECT place FROM janitor_places WHERE task = $1"


async def remember(connection: Connection, task: str, place: str) -> None:
    await connection.execute(_REMEMBER, task, place)


async def place(connection: Connection, task: str) -> str | None:
    found = await connection.fetchval(_PLACE, task)
    return str(found) if found is not None else None
