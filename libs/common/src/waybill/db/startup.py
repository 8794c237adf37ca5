"""Waits for Postgres when a process starts, and tells a person what to do if it does not come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import structlog

from waybill.config import DatabaseUrl
from waybill.errors import DatabaseUnavailable, is_database_outage

log = structlog.get_logger()

_POOLER_REFUSES = "unsupported startup parameter"


async def wait_for_postgres(check: Callable[[], Awaitable[None]], url: DatabaseUrl, seconds: float) -> None:
    """Call `check` until it succeeds, for `seconds` at most. What no waiting can mend is raised at once."""
    deadline = asyncio.get_running_loop().time() + seconds
    pause = 0.1
    while True:
        try:
            await check()
            return
        except Exception as error:
            if not is_database_outage(error) and not isinstance(error, TimeoutError):
                raise
            if _POOLER_REFUSES in str(error):
                raise DatabaseUnavailable(
                    f"{url.shown} is not Postgres but PgBouncer, or another pooler: it says {error}. "
                    "Set WAYBILL_DATABASE_PGBOUNCER=true, or connect to Postgres directly."
                ) from error
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
