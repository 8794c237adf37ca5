"""`waybill jobs show`: everything about one job."""

from __future__ import annotations

from datetime import timedelta

from support.clock import Clock
from support.command_line import Waybill
from support.engine import OTHER, WORK, failure, purge, row, running_job, start_worker, stored, take
from waybill.db.database import Connection
from waybill_engine import NewJob, SequenceKey, State, Unique, enqueue, enqueue_family
from waybill_engine.artefacts import publish
from waybill_engine.finish import RunOutcome, judge, settle, succeed
from waybill_engine.lease import Progress, write_progress

NO_JOB = "019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b"


async def listed(waybill: Waybill, *arguments: object) -> list[str]:
    return [job["id"] for job in (await waybill("jobs", "ls", "--json", *arguments)).json["jobs"]]


async def test_a_job_is_shown_with_facts_timeline_and_artefacts(
    waybill: Waybill, hot: Connection, clock: Clock
) -> None:
    worker, lease = await running_job(hot, payload={"document": "a.pdf"}, unique=Unique("k"), priority=2)
    await publish(hot, lease.worker_id, lease.id, lease.token, "a.xml", stored("results/a.xml"), "application/xml")
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
    await write_progress(hot, [Progress(lease.id, lease.token, lease.worker_id, 0.4, None)])
    record = (await waybill("jobs", "show", lease.id, "--json")).json
    more = {"worker", "lease_expires_at", "history", "artefacts", "trace_url", "children_by_state", "facts"}
    assert set(record) == {*(await row(hot, lease.id)).keys(), *more}
    assert record["progress"] == 0.4
    assert record["lease_owner"] == str(worker.id)
    assert [line["event"] for line in record["history"]] == ["enqueued", "started"]


async def test_a_job_links_to_its_trace_if_the_settings_say_where_traces_are(waybill: Waybill, hot: Connection) -> None:
    _, lease = await running_job(hot)
    link = f"http://localhost:16686/trace/{lease.id.hex}"
    settings = {"WAYBILL_TRACE_URL_TEMPLATE": "http://localhost:16686/trace/{trace_id}"}
    assert f"trace       {link}" in (await waybill("jobs", "show", lease.id, **settings)).out
    assert (await waybill("jobs", "show", lease.id, "--json", **settings)).json["trace_url"] == link
    assert (await waybill("jobs", "show", lease.id, "--json")).json["trace_url"] is None


async def test_a_parent_shows_its_children_and_lists_them(waybill: Waybill, hot: Connection, clock: Clock) -> None:
    family = await enqueue_family(hot, NewJob(OTHER, "acme"), [NewJob(WORK, "acme") for _ in range(4)])
    worker = await start_worker(hot)
    leases = await take(hot, worker, 2)
    await succeed(hot, worker.id, [(leases[0].id, leases[0].token)])
    await settle(hot, worker.id, [(leases[1].id, leases[1].token, RunOutcome(State.FAILED, "failed", code="X"))])
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


async def test_a_job_that_waits_for_its_turn_has_no_time(waybill: Waybill, hot: Connection) -> None:
    sequence = SequenceKey("endpoint:42")
    first, second = [(await enqueue(hot, NewJob(WORK, "acme", sequence=sequence))).id for _ in range(2)]
    assert "sequence    endpoint:42 (1 at once)\n" in (await waybill("jobs", "show", first)).out
    shown = (await waybill("jobs", "show", second)).out
    assert "sequence    endpoint:42 (1 at once, waits for its turn)" in shown
    assert "due  " not in shown
    record = (await waybill("jobs", "show", second, "--json")).json
    assert (record["run_at"], record["sequence_key"]) == (None, "endpoint:42")
    assert "waits for its turn in endpoint:42" in (await waybill("jobs", "ls", "--state", "scheduled")).out
    assert "1 earlier job of the sequence endpoint:42" in (await waybill("jobs", "explain", second)).out
