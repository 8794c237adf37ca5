"""Jobs of workers whose lease ran out go back."""

from __future__ import annotations

from support.clock import Clock
from support.engine import NO_SETTLE, events, row, running_job
from support.janitor import Janitor
from waybill.db.database import Connection
from waybill_janitor.tasks.leases import Leases


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
    _, lease = await running_job(hot)
    await hot.execute("UPDATE workers SET lease_expires_at = now() - interval '1 second'")
    settle = await hot.fetchval("SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float8") + 3600
    assert (await cleaner.run([Leases(cleaner.tools, settle_time=settle)]))["leases"].done == {}
    assert (await row(hot, lease.id))["state"] == "running"
