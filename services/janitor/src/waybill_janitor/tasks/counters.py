"""Small rows that have served: rate limits, idempotency keys, what breakers counted, notes of copies and erasures."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from waybill import rate_limits
from waybill.idempotency import purge
from waybill_janitor.task import Batch, Tally, Tools

if TYPE_CHECKING:
    from waybill.db.database import Connection

_MANY = 1000

_FORGET_BREAKER_COUNTS = """
DELETE FROM breaker_counts WHERE (name, bucket) IN
       (SELECT name, bucket FROM breaker_counts WHERE bucket <= now() - interval '1 day' LIMIT $1)
"""

_FORGET_BREAKER_EVENTS = """
DELETE FROM breaker_events WHERE (name, id) IN
       (SELECT name, id FROM breaker_events WHERE at <= now() - $2::float8 * interval '1 day' LIMIT $1)
"""

_FORGET_COPIES = """
DELETE FROM storage_copies WHERE (place, key) IN
       (SELECT place, key FROM storage_copies WHERE copied_at <= now() - interval '30 days' LIMIT $1)
"""

_FORGET_ERASURES = """
DELETE FROM erasures WHERE id IN
       (SELECT id FROM erasures WHERE finished_at <= now() - $2::float8 * interval '1 day' LIMIT $1)
"""


class _Rows(NamedTuple):
    name: str
    counted: str
    """SQL: how many there are to forget."""
    forget: Callable[..., Awaitable[int]]
    by_age: bool = False
    """Both are given the days after which history goes."""


def _statement(text: str) -> Callable[..., Awaitable[int]]:
    async def run(connection: Connection, *days: float) -> int:
        return int((await connection.execute(text, _MANY, *days)).rpartition(" ")[2])

    return run


_KINDS = {
    one.name: one
    for one in (
        _Rows(
            "rate_limits",
            "SELECT count(*) FROM rate_limits WHERE tat < now()",
            partial(rate_limits.forget_idle, limit=_MANY),
        ),
        _Rows(
            "idempotency_keys",
            "SELECT count(*) FROM idempotency_keys WHERE expires_at <= now()",
            partial(purge, limit=_MANY),
        ),
        _Rows(
            "breaker_counts",
            "SELECT count(*) FROM breaker_counts WHERE bucket <= now() - interval '1 day'",
            _statement(_FORGET_BREAKER_COUNTS),
        ),
        _Rows(
            "breaker_events",
            "SELECT count(*) FROM breaker_events WHERE at <= now() - $1::float8 * interval '1 day'",
            _statement(_FORGET_BREAKER_EVENTS),
            by_age=True,
        ),
        _Rows(
            "storage_copies",
            "SELECT count(*) FROM storage_copies WHERE copied_at <= now() - interval '30 days'",
            _statement(_FORGET_COPIES),
        ),
        _Rows(
            "erasures",
            "SELECT count(*) FROM erasures WHERE finished_at <= now() - $1::float8 * interval '1 day'",
            _statement(_FORGET_ERASURES),
            by_age=True,
        ),
    )
}


class Counters:
    name = "counters"
    items = "rows that have served"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def _days(self, kind: _Rows) -> list[float]:
        return [self._tools.settings.events_ttl_days] if kind.by_age else []

    async def plan(self) -> AsyncIterator[Batch]:
        for kind in _KINDS.values():
            async with self._tools.database.hot() as connection:
                left = await connection.fetchval(kind.counted, *self._days(kind))
            while left > 0:
                yield Batch([kind.name] * min(left, _MANY))
                left -= _MANY

    async def do(self, batch: Batch) -> Tally:
        kind = _KINDS[batch.items[0]]
        async with self._tools.database.hot() as connection:
            return Tally(Counter({kind.name: await kind.forget(connection, *self._days(kind))}))
