"""Bloat and dead rows are found and mended."""

from __future__ import annotations

from support.engine import one_job
from support.janitor import Janitor
from waybill.db.database import Connection
from waybill_janitor.tasks.health import Health, Thresholds

TABLES = ["jobs", "job_events"]


async def test_a_bloated_index_is_rebuilt_and_leftovers_of_a_rebuild_are_dropped(
    cleaner: Janitor, hot: Connection
) -> None:
    await one_job(hot)
    await hot.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'jobs_dead_letter'::regclass")
    await hot.execute("CREATE INDEX jobs_lanes_ccnew ON jobs (id)")
    await hot.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'jobs_lanes_ccnew'::regclass")
    reports = await cleaner.run([Health(cleaner.tools, TABLES)])
    assert reports["health"].done == {"dropped": 1, "rebuilt": 1}
    names = await hot.fetch("SELECT relname FROM pg_class WHERE relname LIKE 'jobs_%' AND relkind = 'i'")
    assert not any("_cc" in row["relname"] for row in names)
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_dead_letter'::regclass"
    assert await hot.fetchval(valid)
    assert (await cleaner.run([Health(cleaner.tools, TABLES)]))["health"].done == {}


async def test_bloat_and_dead_rows_are_found_by_their_measure(cleaner: Janitor, hot: Connection) -> None:
    await hot.execute("ALTER TABLE job_events SET (autovacuum_enabled = false)")
    await hot.execute(
        "INSERT INTO job_events (job_id, event) SELECT gen_random_uuid(), 'x' FROM generate_series(1, 20000)"
    )
    await hot.execute("DELETE FROM job_events")
    await hot.execute("SELECT pg_stat_force_next_flush()")
    eager = Thresholds(dead_rows=50, dead_share=0.1, index_bytes=2**18, bloat=3.0)

    async def planned() -> set[tuple[str, str]]:
        return {tuple(item) async for batch in Health(cleaner.tools, TABLES, eager).plan() for item in batch.items}

    assert await planned() == {("vacuum", "job_events")}
    reports = await cleaner.run([Health(cleaner.tools, TABLES, eager)])
    assert reports["health"].done["vacuumed"] == 1
    # It knows now how few are left; an index does not shrink by that.
    assert ("reindex", "job_events_pkey") in await planned()
    before = await hot.fetchval("SELECT pg_relation_size('job_events_pkey')")
    await cleaner.run([Health(cleaner.tools, TABLES, eager)])
    assert await hot.fetchval("SELECT pg_relation_size('job_events_pkey')") < before / 3
    assert ("reindex", "job_events_pkey") not in await planned()
    assert {item async for batch in Health(cleaner.tools, TABLES).plan() for item in batch.items} == set()
