"""Small rows that have served: rate limits, idempotency keys, notes of copies, ended sessions, and what the engine and
the pipelines add."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from waybill import rate_limits
from waybill.idempotency import purge
from waybill.janitor.task import Batch, Tally, TaskTools
from waybill.retention.rules import ServedRows, served_rows
from waybill_janitor.settings import JanitorSettings

if TYPE_CHECKING:
    from waybill.db.database import Connection

_MANY = 1000

_IDLE_LIMITS = "SELECT count(*) FROM rate_limits WHERE tat < now()"
_EXPIRED_KEYS = "SELECT count(*) FROM idempotency_keys WHERE expires_at <= now()"
_OLD_COPIES = "SELECT count(*) FROM storage_copies WHERE copied_at <= now() - interval '30 days'"

_FORGET_COPIES = """
DELETE FROM storage_copies WHERE (place, key) IN
       (SELECT place, key FROM storage_copies WHERE copied_at <= now() - interval '30 days' LIMIT $1)
"""

_EXPIRED_SESSIONS = "SELECT count(*) FROM ended_sessions WHERE until <= now()"

_FORGET_SESSIONS = """
DELETE FROM ended_sessions WHERE session_id IN
       (SELECT session_id FROM ended_sessions WHERE until <= now() LIMIT $1)
"""


async def _idle_limits(connection: Connection, _days: float) -> int:
    return int(await connection.fetchval(_IDLE_LIMITS))


async def _forget_limits(connection: Connection, _days: float, limit: int) -> int:
    return await rate_limits.forget_idle(connection, limit=limit)


async def _expired_keys(connection: Connection, _days: float) -> int:
    return int(await connection.fetchval(_EXPIRED_KEYS))


async def _forget_keys(connection: Connection, _days: float, limit: int) -> int:
    return await purge(connection, limit=limit)


_PLATFORM = (
    ServedRows("rate_limits", _idle_limits, _forget_limits),
    ServedRows("idempotency_keys", _expired_keys, _forget_keys),
    served_rows("storage_copies", count=_OLD_COPIES, forget=_FORGET_COPIES),
    served_rows("ended_sessions", count=_EXPIRED_SESSIONS, forget=_FORGET_SESSIONS),
)


class Counters:
    name = "counters"
    items = "rows that have served"

    def __init__(self, tools: TaskTools, rows: Sequence[ServedRows] = ()) -> None:
        """`rows` are the engine's and the pipelines'."""
        self._tools = tools
        self._rows = {each.name: each for each in (*_PLATFORM, *rows)}
        self._days = tools.settings_of(JanitorSettings).events_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        for rows in self._rows.values():
            async with self._tools.database.hot() as connection:
                left = await rows.count(connection, self._days)
            while left > 0:
                yield Batch([rows.name] * min(left, _MANY))
                left -= _MANY

    async def do(self, batch: Batch) -> Tally:
        rows = self._rows[batch.items[0]]
        async with self._tools.database.hot() as connection:
            return Tally(Counter({rows.name: await rows.forget(connection, self._days, _MANY)}))
