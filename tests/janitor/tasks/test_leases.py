"""Jobs of workers whose lease ran out go back."""

from __future__ import annotations

from support.clock import Clock
from support.engine import NO_SETTLE, events, row, running_job
from support.janitor import Janitor
from waybill.db.database import Connection
from waybill_janitor.tasks.leases import SETTLE_TIME, Leases


async def test_a_stuck_job_goes_back_with_a_crash_charged(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    _, lease = await running_job(hot)
    await clock.forward(3600)
    reports = await cleaner.run([Leases(cleaner.tools, settle_time=NO_SETTLE)])
    assert reports["leases"].done == {"crashed": 1}
    found = await row(hot, lease.id)
    assert (found["state"], found["crashes"], found["attempts"]) == ("queued", 1, 1)
    assert await events(hot, lease.id) == ["crashed"]


async def test_after_a_start_of_postgres_the_janitor_blames_nobody(
    cleaner: Janitor, hot: Connection, clock: Clock
) -> None:
    """A worker that it does not find again is rescued by a later run, and its job is not charged."""
    _, lease = await running_job(hot)
    await hot.execute(
        "UPDATE workers SET last_seen_at = pg_postmaster_start_time() - interval '1 second', lease_expires_at = now()"
    )
    await clock.forward(1)
    assert (await cleaner.run([Leases(cleaner.tools)]))["leases"].done == {}
    assert (await row(hot, lease.id))["state"] == "running"
    await clock.forward(SETTLE_TIME + 1)
    assert (await cleaner.run([Leases(cleaner.tools)]))["leases"].done == {"suspected": 1}
    assert (await row(hot, lease.id))["crashes"] == 0
