"""`waybill jobs ls` and `show`: finding jobs, and looking at one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cli.conftest import Waybill
from support.clock import Clock
from support.engine import OTHER, WORK, failure, one_job, row, running_job, some_jobs, start_worker, stored, take
from waybill.db.database import Connection
from waybill_engine import NewJob, State, Unique, enqueue_family
from waybill_engine.artefacts import publish
from waybill_engine.control import cancel, purge
from waybill_engine.finish import Outcome, judge, settle, succeed
from waybill_engine.lease import Progress, write_progress

NO_JOB = "019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b"


async def listed(waybill: Waybill, *arguments: object) -> list[str]:
    return [job["id"] for job in (await waybill("jobs", "ls", "--json", *arguments)).json["jobs"]]


# ls


async def test_a_list_shows_whole_ids_newest_first(waybill: Waybill, hot: Connection) -> None:
    jobs = await some_jobs(hot, 3)
    ran = await waybill("jobs", "ls")
    assert [line.split()[0] for line in ran.lines] == ["ID", *(str(job) for job in reversed(jobs))]
    assert ran.err == ""


async def test_a_list_can_be_narrowed(waybill: Waybill, hot: Connection) -> None:
    waiting, stopped = await some_jobs(hot, 2)
    await cancel(hot, stopped)
    other = await one_job(hot, OTHER, queue="night")
    assert await listed(waybill, "--state", "cancelled") == [str(stopped)]
    assert await listed(waybill, "--state", "cancelled", "--state", "queued", "--kind", "work") == [
        str(stopped),
        str(waiting),
    ]
    assert await listed(waybill, "--queue", "night") == [str(other)]
    assert await listed(waybill, "--tenant", "nobody") == []


async def test_a_list_continues_where_it_ended(waybill: Waybill, hot: Connection) -> None:
    jobs = [str(job) for job in (await some_jobs(hot, 5))[::-1]]
    first = (await waybill("jobs", "ls", "--json", "--limit", 3)).json
    rest = (await waybill("jobs", "ls", "--json", "--limit", 3, "--before", first["next_before"])).json
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == jobs
    assert rest["next_before"] is None
    assert f"--before {jobs[2]}" in (await waybill("jobs", "ls", "-n", 3)).err


async def test_an_empty_list_is_kind(waybill: Waybill, hot: Connection) -> None:
    ran = await waybill("jobs", "ls")
    assert (ran.code, ran.out) == (0, "")
    assert "waybill selftest" in ran.err
    assert "No jobs match" in (await waybill("jobs", "ls", "--kind", "work")).err
    assert (await waybill("jobs", "ls", "--json")).json == {"jobs": [], "next_before": None}


async def test_ages_follow_the_databases_clock(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    await one_job(hot)
    await one_job(hot, delay=7200.0)
    await clock.forward(3 * 60 + 5)
    newer, older = (await waybill("jobs", "ls")).lines[1:]
    assert "3 min ago" in older
    assert newer.endswith("in 2 h")


async def test_a_list_says_the_one_thing_worth_knowing(waybill: Waybill, hot: Connection) -> None:
    worker, lease = await running_job(hot)
    await write_progress(hot, [Progress(lease.id, lease.token, 0.4, "page 2 of 5")])
    assert "40 % page 2 of 5" in (await waybill("jobs", "ls")).out
    await cancel(hot, lease.id)
    assert "asked to stop · 40 %" in (await waybill("jobs", "ls")).out
    await settle(hot, worker.id, [(lease.id, lease.token, Outcome(State.FAILED, "failed", code="X", message="bad"))])
    assert "X: bad" in (await waybill("jobs", "ls")).out


@pytest.mark.parametrize(
    "wrong", [("--state", "done"), ("--limit", "0"), ("--before", "yesterday"), ("--nonsense",), ("extra",)]
)
async def test_a_wrong_argument_is_a_usage_error(waybill: Waybill, wrong: tuple[str, ...], database_url: str) -> None:
    assert (await waybill("jobs", "ls", *wrong)).code == 2


# show


async def test_a_job_is_shown_with_facts_timeline_and_artefacts(
    waybill: Waybill, hot: Connection, clock: Clock
) -> None:
    worker, lease = await running_job(hot, payload={"document": "a.pdf"}, unique=Unique("k"), priority=2)
    await publish(hot, lease.id, lease.token, "a.xml", stored("results/a.xml"), "application/xml")
    await clock.forward(125)
    await succeed(hot, worker.id, [(lease.id, lease.token)])
    shown = (await waybill("jobs", "show", lease.id)).out
    facts = dict(line.split(maxsplit=1) for line in shown.split("\n\n")[0].splitlines()[1:])
    assert facts["state"] == "succeeded"
    assert facts["payload"] == '{"document": "a.pdf"}'
    assert facts["unique"] == "k (while it is active)"
    assert facts["priority"] == "2"
    assert facts["attempts"] == "0 of 3"
    assert facts["ran"].startswith("2 min ")
    assert f"run 1 on {worker.name}" in shown
    assert "a.xml  application/xml   3 B  abab" in shown


async def test_a_retry_is_told_with_its_reason_and_time(waybill: Waybill, hot: Connection) -> None:
    worker, lease = await running_job(hot)
    await settle(hot, worker.id, [(lease.id, lease.token, judge(lease, failure(), WORK.retry))])
    shown = (await waybill("jobs", "show", lease.id)).out
    assert "retry scheduled  GW_5XX: no luck · again in 10 s · attempts 1" in shown
    assert "last error  GW_5XX: no luck" in shown


async def test_a_running_job_names_its_worker_and_lease(waybill: Waybill, hot: Connection) -> None:
    worker, lease = await running_job(hot)
    assert f"{worker.name}, lease until " in (await waybill("jobs", "show", lease.id)).out
    record = (await waybill("jobs", "show", lease.id, "--json")).json
    assert record["worker"] == worker.name
    assert record["lease_expires_at"].endswith("Z")


async def test_the_json_of_a_job_has_every_column_and_more(waybill: Waybill, hot: Connection) -> None:
    worker, lease = await running_job(hot)
    await write_progress(hot, [Progress(lease.id, lease.token, 0.4, None)])
    record = (await waybill("jobs", "show", lease.id, "--json")).json
    more = {"worker", "lease_expires_at", "history", "artefacts", "children_by_state"}
    assert set(record) == {*(await row(hot, lease.id)).keys(), *more}
    assert record["progress"] == 0.4
    assert record["lease_owner"] == str(worker.id)
    assert [line["event"] for line in record["history"]] == ["enqueued", "started"]


async def test_an_id_may_be_abbreviated_while_it_is_unambiguous(waybill: Waybill, hot: Connection) -> None:
    job, twin = await some_jobs(hot, 2)
    same = 0
    while str(job)[same] == str(twin)[same]:
        same += 1
    assert (await waybill("jobs", "show", str(job)[: same + 1], "--json")).json["id"] == str(job)
    assert (await waybill("jobs", "show", job.hex.upper(), "--json")).json["id"] == str(job)
    ambiguous = await waybill("jobs", "show", str(job)[:8])
    assert (ambiguous.code, ambiguous.out) == (1, "")
    assert str(twin) in ambiguous.err


async def test_what_is_no_id_is_a_usage_error_and_an_unknown_id_a_refusal(waybill: Waybill, hot: Connection) -> None:
    for wrong in ("0", "abcdefg", "nonsense", "019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b0"):
        ran = await waybill("jobs", "show", wrong)
        assert (ran.code, ran.out) == (2, "")
    for missing in (NO_JOB, NO_JOB[:12]):
        ran = await waybill("jobs", "show", missing)
        assert (ran.code, ran.out) == (1, "")
        assert missing in ran.err


# Families


async def test_a_parent_shows_its_children_and_lists_them(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    family = await enqueue_family(hot, NewJob(OTHER, "acme"), [NewJob(WORK, "acme") for _ in range(4)])
    worker = await start_worker(hot)
    leases = await take(hot, worker, 2)
    await succeed(hot, worker.id, [(leases[0].id, leases[0].token)])
    await settle(hot, worker.id, [(leases[1].id, leases[1].token, Outcome(State.FAILED, "failed", code="X"))])
    shown = (await waybill("jobs", "show", family.parent.id)).out
    facts = dict(line.split(maxsplit=1) for line in shown.split("\n\n")[0].splitlines()[1:])
    assert facts["state"] == "scheduled  50 %"
    assert facts["children"] == "waits for 2 of 4: 2 queued, 1 succeeded, 1 failed"
    assert "due" not in facts
    record = (await waybill("jobs", "show", family.parent.id, "--json")).json
    assert (record["run_at"], record["pending_children"]) == (None, 2)
    assert (record["children_by_state"]["queued"], record["children_by_state"]["running"]) == (2, 0)
    assert "2 of 4 children ended" in (await waybill("jobs", "ls", "--kind", "other")).out
    assert (await waybill("jobs", "explain", family.parent.id)).out == "It is waiting for 2 of 4 children.\n"
    assert await listed(waybill, "--parent", family.parent.id) == [str(one.id) for one in family.children[::-1]]
    assert await listed(waybill, "--parent", family.parent.id, "--state", "failed") == [str(leases[1].id)]
    assert f"parent      {family.parent.id}" in (await waybill("jobs", "show", leases[0].id)).out
    await clock.forward(10)
    await purge(hot, older_than=timedelta(seconds=5), states=[State.SUCCEEDED])
    assert "2 queued, 1 failed, 1 purged" in (await waybill("jobs", "show", family.parent.id)).out
