"""`waybill jobs cancel`, `retry` and `rm` with a filter instead of ids."""

from __future__ import annotations

import uuid

import pytest

from support.clock import Clock
from support.command_line import Waybill
from support.engine import OTHER, WORK, one_job, row, running_job, some_jobs, state, states
from waybill.db.database import Connection
from waybill.retention import hold
from waybill_engine import JobKind, NewJob, State, Unique, enqueue_family
from waybill_engine.control import cancel
from waybill_engine.finish import RunOutcome, settle
from waybill_engine.retention import pin


async def ended(hot: Connection, how: State, code: str = "GW_5XX", kind: JobKind = WORK, **facts: object) -> uuid.UUID:
    worker, lease = await running_job(hot, kind, **facts)
    await settle(hot, worker.id, [(lease.id, lease.token, RunOutcome(how, how.value, code=code, message="no luck"))])
    return lease.id


async def test_a_dry_run_counts_and_changes_nothing(waybill: Waybill, hot: Connection) -> None:
    jobs = await some_jobs(hot, 3)
    await one_job(hot, OTHER)
    ran = await waybill("jobs", "cancel", "--kind", "work", "--dry-run")
    assert (ran.code, ran.out) == (0, "Would cancel 3 jobs (scheduled, queued, running) of kind work.\n")
    ran = await waybill("jobs", "cancel", "--kind", "work", "--dry-run", "--json")
    assert ran.json == {"dry_run": True, "matching": 3, "cancelled": 0, "stopping": 0, "left": []}
    assert await states(hot, jobs) == [State.QUEUED] * 3


async def test_it_counts_and_asks_first(waybill: Waybill, hot: Connection) -> None:
    job_id = await one_job(hot)
    for answer in ("n\n", ""):
        refused = await waybill("jobs", "cancel", "--tenant", "acme", typed=answer)
        assert refused.code == 1
        assert "Cancel 1 job (scheduled, queued, running) of tenant acme?" in refused.err
        assert "Nothing was cancelled. Use --yes to cancel without asking, or --dry-run to only count." in refused.err
        assert await state(hot, job_id) is State.QUEUED
    agreed = await waybill("jobs", "cancel", "--tenant", "acme", "--reason", "too many", typed="y\n")
    assert "Cancelled 1 job (scheduled, queued, running) of tenant acme.\n" in agreed.out
    assert (await row(hot, job_id))["error_message"] == "too many"


async def test_cancelling_tells_what_still_runs_and_counts_whole_families(waybill: Waybill, hot: Connection) -> None:
    await running_job(hot)
    await enqueue_family(hot, NewJob(OTHER, "acme"), [NewJob(WORK, "acme", queue="night") for _ in range(3)])
    ran = await waybill("jobs", "cancel", "--state", "running", "--state", "scheduled", "--yes")
    assert ran.out == "Cancelled 4 jobs (running, scheduled); 1 running job asked to stop.\n"


async def test_jobs_are_retried_by_error_code_and_age_without_those_that_people_cancelled(
    waybill: Waybill, hot: Connection, clock: Clock
) -> None:
    old, cancelled = await ended(hot, State.DEAD_LETTER), await one_job(hot)
    await cancel(hot, cancelled)
    other = await ended(hot, State.FAILED, "PARSE_ERROR")
    await clock.forward(7200)
    fresh = await ended(hot, State.DEAD_LETTER)
    ran = await waybill("jobs", "retry", "--error-code", "GW_5XX", "--older-than", "1h", "--yes")
    said = "(failed, dead_letter) with the error GW_5XX that ended more than 1 h ago"
    assert (ran.code, ran.out) == (0, f"Queued 1 job {said} again.\n")
    ran = await waybill("jobs", "retry", "--older-than", "1h", "--yes", "--json")
    assert ran.json == {"dry_run": False, "matching": 1, "retried": 1, "left": []}
    wanted = [State.QUEUED, State.QUEUED, State.CANCELLED, State.DEAD_LETTER]
    assert await states(hot, (old, other, cancelled, fresh)) == wanted
    await waybill("jobs", "retry", "--state", "cancelled", "--yes")
    assert await state(hot, cancelled) is State.QUEUED


async def test_what_cannot_be_retried_is_told(waybill: Waybill, hot: Connection) -> None:
    dead = await ended(hot, State.DEAD_LETTER, unique=Unique("key"))
    await one_job(hot, unique=Unique("key"))
    ran = await waybill("jobs", "retry", "--unique", "key", "--yes", "--json")
    assert ran.code == 1
    assert ran.json == {"dry_run": False, "matching": 1, "retried": 0, "left": [str(dead)]}
    assert f"The first is {dead}." in ran.err


async def test_ended_jobs_are_removed_by_filter_for_good(waybill: Waybill, hot: Connection) -> None:
    gone, kept = await ended(hot, State.FAILED, queue="default"), await ended(hot, State.FAILED, "TIMEOUT")
    waiting = await one_job(hot)
    ran = await waybill("jobs", "rm", "--queue", "default", "--error-code", "GW_5XX", typed="y\n")
    said = "(succeeded, failed, dead_letter, cancelled) in queue default with the error GW_5XX"
    assert f"Delete 1 job {said}, for good?" in ran.err
    assert f"Deleted 1 job {said}.\n" in ran.out
    assert {one["id"] for one in await hot.fetch("SELECT id FROM jobs")} == {kept, waiting}
    assert gone != kept


async def test_jobs_are_removed_by_their_ids_if_they_may_be(waybill: Waybill, hot: Connection) -> None:
    gone, pinned, held = [await ended(hot, State.FAILED, tenant=tenant) for tenant in ("acme", "acme", "globex")]
    waiting = await one_job(hot)
    await pin(hot, pinned, pinned=True)
    await hold(hot, "globex")
    ran = await waybill("jobs", "rm", gone, pinned, held, waiting, gone)
    assert (ran.code, ran.out) == (1, f"{gone} deleted\n")
    assert f"{pinned} is pinned" in ran.err
    assert "legal hold" in ran.err
    assert f"{waiting} is queued. Cancel it first." in ran.err
    assert {one["id"] for one in await hot.fetch("SELECT id FROM jobs")} == {pinned, held, waiting}
    assert await hot.fetchval("SELECT count(*) FROM job_events WHERE job_id = $1", gone) == 0


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (("cancel",), "name the jobs, or choose them with"),
        (("retry", "--yes"), "name the jobs, or choose them with"),
        (("cancel", "019a8b2c", "--kind", "work"), "name the jobs, or choose them with"),
        (("rm", "019a8b2c", "--dry-run"), "only works with a filter"),
        (("retry", "019a8b2c", "--yes"), "only works with a filter"),
        (("cancel", "--kind", "work", "--wait"), "only works with ids"),
        (("cancel", "--state", "failed"), "jobs that are failed cannot be cancelled"),
        (("retry", "--state", "succeeded"), "jobs that are succeeded cannot be retried"),
        (("rm", "--state", "running"), "jobs that are running cannot be deleted"),
        (("rm", "--older-than", "30"), "with a unit"),
    ],
)
async def test_what_it_cannot_mean_is_refused(
    waybill: Waybill, wrong: tuple[str, ...], why: str, database_url: str
) -> None:
    ran = await waybill("jobs", *wrong)
    assert ran.code == 2
    assert why in " ".join(ran.err.replace("│", " ").split())
