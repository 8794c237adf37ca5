"""Waits for Postgres when a process starts, and tells a person what to do if it does not come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import asyncpg
import structlog

from waybill.config import DatabaseUrl
from waybill.errors import DatabaseUnavailable
from waybill.failures import is_database_outage

if TYPE_CHECKING:
    from waybill.db.hot_pool import Connection

log = structlog.get_logger()

_POOLER_REFUSES = "unsupported startup parameter"
_POOLER_FORGETS = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
"""What a pooler answers that runs a statement on another server than the one that prepared it."""

_IN_EFFECT = "SELECT name, setting FROM pg_settings WHERE name = ANY ($1::text[])"


class HiddenPooler(DatabaseUnavailable):
    """A pooler answers where nobody told us of one. No waiting can mend that."""


def hidden_pooler(url: DatabaseUrl, sign: str) -> HiddenPooler:
    return HiddenPooler(
        f"{url.shown} is not Postgres but PgBouncer, or another pooler: it {sign}. "
        "Set WAYBILL_DATABASE_PGBOUNCER=true, or connect to Postgres directly."
    )


async def refuse_hidden_pooler(connection: Connection, url: DatabaseUrl, sent: Mapping[str, str]) -> None:
    """Raise unless the settings that this connection was opened with are in effect.

    Postgres takes them or refuses the connection. A pooler that was told to ignore them (`ignore_startup_parameters`)
    connects all the same, and then the first failure would be a listener that never hears anything.
    """
    found = {row["name"]: row["setting"] for row in await connection.fetch(_IN_EFFECT, list(sent))}
    ignored = sorted(name for name, value in sent.items() if found.get(name) != value)
    if ignored:
        raise hidden_pooler(url, f"ignores what a connection asks for ({', '.join(ignored)})")


async def wait_for_postgres(check: Callable[[], Awaitable[None]], url: DatabaseUrl, seconds: float) -> None:
    """Call `check` until it succeeds, for `seconds` at most. What no waiting can mend is raised at once."""
    deadline = asyncio.get_running_loop().time() + seconds
    pause = 0.1
    while True:
        try:
            await check()
            return
        except Exception as error:
            if _POOLER_REFUSES in str(error) or isinstance(error, _POOLER_FORGETS):
                raise hidden_pooler(url, f"says {error}") from error
            if isinstance(error, HiddenPooler) or (
                not is_database_outage(error) and not isinstance(error, TimeoutError)
            ):
                raise
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise DatabaseUnavailable(_advice(error, url, seconds)) from error
            log.warning("waiting_for_postgres", at=url.shown, error=str(error), again_in=round(pause, 1))
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, 5.0)


def _advice(error: Exception, url: DatabaseUrl, seconds: float) -> str:
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return (
            f"Postgres at {url.shown} answers, but does not write: it is a standby, or set to read only. "
            "Name its primary in WAYBILL_DATABASE_URL, or all its servers, separated by commas."
        )
    return (
        f"Postgres at {url.shown} did not answer within {seconds:.0f} s: {error}. "
        "Is it running, and is WAYBILL_DATABASE_URL right?"
    )
