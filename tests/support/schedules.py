"""Helpers for tests of periodic jobs: set the time, and see which ticks have fired."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from support.engine import WORK
from waybill.db.database import Connection
from waybill_engine.schedules import Schedule


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def nightly(**facts: Any) -> Schedule:
    """A schedule for 02:30 UTC, unless the test changes it."""
    usual: dict[str, Any] = {"name": "nightly", "kind": WORK, "cron": "30 2 * * *", "tenant": "acme"}
    return Schedule(**(usual | facts))


async def set_time(connection: Connection, moment: datetime) -> None:
    """Set the time to `moment` for every connection to the database."""
    await connection.execute(
        "UPDATE test_clock.shift SET seconds = extract(epoch FROM $1::timestamptz - pg_catalog.now())", moment
    )


async def fired_ticks(connection: Connection, name: str = "nightly") -> list[datetime]:
    """The tick of every job that a schedule has made; twice if there are two jobs."""
    rows = await connection.fetch(
        "SELECT payload -> 'schedule' ->> 'tick' FROM jobs WHERE payload -> 'schedule' ->> 'name' = $1 ORDER BY 1", name
    )
    return [datetime.fromisoformat(row[0]) for row in rows]


# Stops a scheduler after it has enqueued and before it has moved on, while somebody has the lock.
STOP_BEFORE_MOVING_ON = """
CREATE FUNCTION public.wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$;
CREATE TRIGGER wait_for_the_test BEFORE UPDATE ON public.schedules
    FOR EACH ROW EXECUTE FUNCTION public.wait_for_the_test();
"""
HOLD = "SELECT pg_advisory_lock(4711)"
LET_GO = "SELECT pg_advisory_unlock(4711)"
