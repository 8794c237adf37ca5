"""Stuck leases, workers gone for long, small rows that have served, alarms, durations, the health of hot tables."""

from __future__ import annotations

from support.clock import Clock
from support.engine import NO_SETTLE, events, one_job, row, running_job, start_worker
from support.janitor import DAY, Janitor, document
from waybill import idempotency, rate_limits
from waybill.changes.subscriptions import Changes
from waybill.db import Database
from waybill.db.database import Connection
from waybill.storage import LocalStorage
from waybill_convert.estimates import Estimates, Noted
from waybill_convert.service import Conversions
from waybill_janitor.tasks.health import Health, Thresholds
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


async def test_workers_gone_for_long_leave_the_list(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    gone, there = await start_worker(hot), await start_worker(hot)
    await hot.execute("UPDATE workers SET state = 'gone', stopped_at = now() WHERE id = $1", gone.id)
    await clock.forward(6 * DAY)
    await hot.execute("UPDATE workers SET lease_expires_at = now() + interval '9 days' WHERE id = $1", there.id)
    assert "workers" not in await cleaner.clean()
    await clock.forward(2 * DAY)
    assert (await cleaner.clean())["workers"] == {"workers": 1}
    assert [row["id"] for row in await hot.fetch("SELECT id FROM workers")] == [there.id]


async def test_small_rows_go_when_they_have_served(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    for number in range(3):
        await rate_limits.take(hot, f"upload:{number}", limit=10)
        await idempotency.begin(hot, tenant="acme", key=str(number), fingerprint="f")
    await hot.execute("INSERT INTO breaker_counts VALUES ('gateway', now(), 1, 1)")
    await hot.execute("INSERT INTO breaker_events (name, at, event, detail) VALUES ('gateway', now(), 'opened', '{}')")
    await hot.execute("INSERT INTO storage_copies VALUES ('/there', 'a', 1, 'ab', now())")
    assert await cleaner.clean() == {}
    await clock.forward(2 * DAY)
    assert await cleaner.would() == {"counters": 7}
    assert (await cleaner.clean())["counters"] == {"rate_limits": 3, "idempotency_keys": 3, "breaker_counts": 1}
    await clock.forward(100 * DAY)
    assert (await cleaner.clean())["counters"] == {"breaker_events": 1, "storage_copies": 1}


async def test_dead_letters_that_nobody_looks_at_raise_an_alarm(
    cleaner: Janitor, hot: Connection, storage: LocalStorage, clock: Clock
) -> None:
    await document(hot, storage, "dead_letter")
    found = (await cleaner.run())["dead_letters"].found
    assert (found["waiting"], found["old"]) == (1, 0)
    await clock.forward(2 * DAY)
    found = (await cleaner.run())["dead_letters"].found
    assert (found["waiting"], found["old"]) == (1, 1)
    assert found["oldest_seconds"] >= 2 * DAY


async def test_durations_are_noted_and_serve_when_the_jobs_are_gone(
    cleaner: Janitor, db: Database, hot: Connection, storage: LocalStorage
) -> None:
    for seconds in (10, 11, 12, 13, 14, 15):
        job = await document(hot, storage)
        await hot.execute("UPDATE conversions SET bytes = 100000 WHERE job_id = $1", job)
        await hot.execute(
            "UPDATE jobs SET finished_at = started_at + $2 * interval '1 second' WHERE id = $1", job, seconds
        )
    await cleaner.clean()
    noted = await hot.fetchrow("SELECT * FROM durations")
    assert noted is not None
    assert (noted["kind"], noted["size"], noted["samples"]) == ("convert_pdf", 16, 6)
    assert (noted["low"], noted["median"], noted["high"]) == (11.25, 12.5, 13.75)
    assert Estimates((), {16: Noted(6, 11.25, 12.5, 13.75)}).remaining(100_000, 2.5) == 10
    assert Estimates((), {16: Noted(2, 11.25, 12.5, 13.75)}).remaining(100_000, 2.5) is None
    await hot.execute("TRUNCATE jobs, conversions, job_artefacts, job_events")
    await hot.execute("UPDATE durations SET samples = 60")
    running = await document(hot, storage, "running")
    await hot.execute("UPDATE conversions SET bytes = 90000 WHERE job_id = $1", running)
    conversions = Conversions(db, storage, Changes(db))
    assert (await conversions.get("tenant:acme", running)).remaining_seconds in range(5, 14)


async def test_a_bloated_index_is_rebuilt_and_leftovers_of_a_rebuild_are_dropped(
    cleaner: Janitor, hot: Connection
) -> None:
    await one_job(hot)
    await hot.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'jobs_dead_letter'::regclass")
    await hot.execute("CREATE INDEX jobs_lanes_ccnew ON jobs (id)")
    await hot.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'jobs_lanes_ccnew'::regclass")
    reports = await cleaner.run([Health(cleaner.tools)])
    assert reports["health"].done == {"dropped": 1, "rebuilt": 1}
    names = await hot.fetch("SELECT relname FROM pg_class WHERE relname LIKE 'jobs_%' AND relkind = 'i'")
    assert not any("_cc" in row["relname"] for row in names)
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_dead_letter'::regclass"
    assert await hot.fetchval(valid)
    assert (await cleaner.run([Health(cleaner.tools)]))["health"].done == {}


async def test_bloat_and_dead_rows_are_found_by_their_measure(cleaner: Janitor, hot: Connection) -> None:
    await hot.execute("ALTER TABLE job_events SET (autovacuum_enabled = false)")
    await hot.execute(
        "INSERT INTO job_events (job_id, event) SELECT gen_random_uuid(), 'x' FROM generate_series(1, 20000)"
    )
    await hot.execute("DELETE FROM job_events")
    await hot.execute("SELECT pg_stat_force_next_flush()")
    eager = Thresholds(dead_rows=50, dead_share=0.1, index_bytes=2**18, bloat=3.0)

    async def planned() -> set[tuple[str, str]]:
        return {tuple(item) async for batch in Health(cleaner.tools, eager).plan() for item in batch.items}

    assert await planned() == {("vacuum", "job_events")}
    reports = await cleaner.run([Health(cleaner.tools, eager)])
    assert reports["health"].done["vacuumed"] == 1
    # It knows now how few are left; an index does not shrink by that.
    assert ("reindex", "job_events_pkey") in await planned()
    before = await hot.fetchval("SELECT pg_relation_size('job_events_pkey')")
    await cleaner.run([Health(cleaner.tools, eager)])
    assert await hot.fetchval("SELECT pg_relation_size('job_events_pkey')") < before / 3
    assert ("reindex", "job_events_pkey") not in await planned()
    assert {item async for batch in Health(cleaner.tools).plan() for item in batch.items} == set()
