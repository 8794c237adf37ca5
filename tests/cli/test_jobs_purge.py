"""`waybill jobs purge`: deleting finished jobs."""

from __future__ import annotations

import uuid

import pytest

from support.clock import Clock
from support.command_line import Waybill
from support.engine import TTL, one_job, running_job
from waybill.db.database import Connection
from waybill_engine import State
from waybill_engine.finish import RunOutcome, settle, succeed

NO_JOB = "019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b"


async def finished(hot: Connection, how: State, tenant: str = "acme") -> uuid.UUID:
    worker, lease = await running_job(hot)
    await hot.execute("UPDATE jobs SET tenant = $2 WHERE id = $1", lease.id, tenant)
    if how is State.SUCCEEDED:
        await succeed(hot, worker.id, [(lease.id, lease.token)])
    else:
        await settle(hot, worker.id, [(lease.id, lease.token, RunOutcome(how, how.value))])
    return lease.id


async def left(hot: Connection) -> set[uuid.UUID]:
    return {found["id"] for found in await hot.fetch("SELECT id FROM jobs")}


async def test_only_what_is_old_and_went_well_is_purged(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    for how in (State.SUCCEEDED, State.CANCELLED):
        await finished(hot, how)
    kept = {await finished(hot, State.FAILED), await finished(hot, State.DEAD_LETTER), await one_job(hot)}
    await clock.forward(3600)
    ran = await waybill("jobs", "purge", "--older-than", "30m", "--yes", "--json")
    assert ran.json == {"dry_run": False, "matching": 2, "deleted": 2}
    assert await left(hot) == kept


async def test_failures_are_purged_when_named_and_by_tenant(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    await finished(hot, State.FAILED, "globex")
    kept = await finished(hot, State.FAILED, "acme")
    await clock.forward(TTL)
    ran = await waybill("jobs", "purge", "--older-than", "1s", "--state", "failed", "--tenant", "globex", "--yes")
    assert "Deleted 1 job (failed) of tenant globex" in ran.out
    assert await left(hot) == {kept}


async def test_a_dry_run_counts_and_deletes_nothing(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    job_id = await finished(hot, State.SUCCEEDED)
    await clock.forward(10)
    ran = await waybill("jobs", "purge", "--older-than", "5s", "--dry-run")
    assert (ran.code, ran.out) == (0, "Would delete 1 job (succeeded, cancelled) that ended more than 5 s ago.\n")
    assert await left(hot) == {job_id}


async def test_purging_asks_first(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    job_id = await finished(hot, State.SUCCEEDED)
    await clock.forward(10)
    for answer in ("n\n", ""):
        refused = await waybill("jobs", "purge", "--older-than", "5s", typed=answer)
        assert refused.code == 1
        assert "Nothing was deleted" in refused.err
        assert await left(hot) == {job_id}
    agreed = await waybill("jobs", "purge", "--older-than", "5s", typed="y\n")
    assert "Delete 1 job (succeeded, cancelled) that ended more than 5 s ago, for good?" in agreed.err
    assert "Deleted 1 job " in agreed.out
    assert await left(hot) == set()


@pytest.mark.parametrize(
    "wrong", [(), ("--older-than", "30"), ("--older-than", "soon"), ("--older-than", "1d", "--state", "running")]
)
async def test_purging_refuses_what_it_cannot_mean(waybill: Waybill, wrong: tuple[str, ...]) -> None:
    assert (await waybill("jobs", "purge", "--yes", *wrong)).code == 2
