"""Every Postgres we say we run on: a job's life, and the plan of its claim."""

from __future__ import annotations

from datetime import timedelta

import pytest

from support.engine import purge, states, take, take_isolated
from support.server import embedded
from waybill.config import CommonSettings
from waybill.db import Database
from waybill.db.migrations import upgrade
from waybill.ids import new_id
from waybill_cli.local.postgres import debian_binaries
from waybill_engine import JobKind, NewJob, State, Unique, enqueue_many
from waybill_engine.control import cancel, retry
from waybill_engine.finish import released, settle, succeed, succeeded_by
from waybill_engine.kind_limits import record_limits
from waybill_engine.lease import WorkerInfo, holdings, register
from waybill_engine.new_job import MAX_PAYLOAD
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import rescue_worker

WORK = JobKind("work")


@pytest.mark.parametrize("version", ["16", "debian"])
async def test_a_jobs_whole_life_on_another_version(version: str) -> None:
    if version == "debian" and debian_binaries() is None:
        pytest.skip("Debian's Postgres 15 is not installed (package postgresql-15)")
    with embedded(version) as server:
        url = server.create_database("other_version")
        await upgrade(url)
        db = await Database.connect(CommonSettings.model_validate({"database_url": url}))
        worker = WorkerInfo(new_id(), "w:1", "w", 1, "0", ["default"], ["work"], 2)
        async with db.hot() as connection:
            await register(connection, worker, 60)
            jobs = await enqueue_many(
                connection,
                [*(NewJob(WORK, "acme") for _ in range(3)), NewJob(WORK, "acme", delay=5, unique=Unique("k"))],
            )
            first, second, third = await take(connection, worker, 10)
            assert (await holdings(connection, worker.id)).tokens.keys() == {first.id, second.id, third.id}
            assert await succeed(connection, worker.id, [(first.id, first.token)]) == {first.id}
            await settle(connection, worker.id, [(second.id, second.token, released("a test"))])
            assert [one.event for one in await rescue_worker(connection, worker.id)] == ["crashed"]
            again = WorkerInfo(new_id(), "w:2", "w", 2, "0", ["default"], ["work"], 1, isolating=True)
            await register(connection, again, 60)
            assert [one.id for one in await take_isolated(connection, again)] == [third.id]
            assert (await promote_due(connection)).count == 0
            assert (await cancel(connection, jobs[3].id)).state is State.CANCELLED
            await retry(connection, jobs[3].id)
            async with connection.transaction():
                assert await succeeded_by(connection, worker.id, [(job.id, 1) for job in jobs]) == {first.id}
            assert await states(connection, [job.id for job in jobs]) == ["succeeded", "queued", "running", "queued"]
            purged = await purge(connection, older_than=timedelta(seconds=-1), states=[State.SUCCEEDED])
            assert purged == 1
            await record_limits(connection, [WORK])
            big = f"jsonb_build_object('x', repeat('1, ', {MAX_PAYLOAD // 3 - 10}))"
            assert await connection.fetchval(f"SELECT created FROM waybill_enqueue('work', 'acme', {big})")
        await db.close()
