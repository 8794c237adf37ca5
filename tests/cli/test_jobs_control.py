"""`waybill jobs retry`, `prioritise` and `cancel`: changing jobs one by one."""

from __future__ import annotations

import asyncio

from support.command_line import Waybill
from support.engine import OTHER, WORK, one_job, row, running_job, some_jobs, start_worker, state, take
from waybill.db.database import Connection
from waybill_engine import NewJob, State, enqueue_family
from waybill_engine.control import cancel
from waybill_engine.finish import RunOutcome, settle, succeed

NO_JOB = "019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b"


def some(count: int) -> list[NewJob]:
    return [NewJob(WORK, "acme") for _ in range(count)]


async def test_each_job_is_retried_or_refused_for_itself(waybill: Waybill, hot: Connection) -> None:
    stopped, waiting = await some_jobs(hot, 2)
    await cancel(hot, stopped)
    ran = await waybill("jobs", "retry", NO_JOB, waiting, stopped, stopped)
    assert ran.code == 1
    assert ran.out == f"{stopped} queued again\n"
    assert f"There is no job {NO_JOB}" in ran.err
    assert f"job {waiting} is queued" in ran.err
    assert await state(hot, stopped) is State.QUEUED


async def test_the_json_of_several_outcomes_is_complete(waybill: Waybill, hot: Connection) -> None:
    stopped = await one_job(hot)
    await cancel(hot, stopped)
    ran = await waybill("jobs", "retry", "--json", NO_JOB, stopped)
    assert ran.code == 1
    refused, done = ran.json["results"]
    assert refused["error"]["code"] == "NOT_FOUND"
    assert refused["state"] is None
    assert done == {"given": str(stopped), "id": str(stopped), "state": "queued", "error": None}


async def test_a_waiting_job_is_cancelled_at_once_with_the_reason(waybill: Waybill, hot: Connection) -> None:
    job_id = await one_job(hot)
    ran = await waybill("jobs", "cancel", job_id, "--reason", "wrong file")
    assert ran.out == f"{job_id} cancelled\n"
    assert (await row(hot, job_id))["error_message"] == "wrong file"
    assert (await waybill("jobs", "cancel", job_id)).code == 1


async def test_a_running_job_is_asked_to_stop(waybill: Waybill, hot: Connection) -> None:
    _, lease = await running_job(hot)
    ran = await waybill("jobs", "cancel", lease.id)
    assert (ran.code, ran.out) == (0, f"{lease.id} is running; its worker has been asked to stop it\n")
    assert (await row(hot, lease.id))["cancel_requested_at"] is not None


async def test_cancelling_a_parent_tells_what_became_of_its_family(waybill: Waybill, hot: Connection) -> None:
    families = [await enqueue_family(hot, NewJob(OTHER, "acme"), some(4)) for _ in range(2)]
    worker = await start_worker(hot)
    (running,) = await take(hot, worker, 1)
    first, second = families
    ran = await waybill("jobs", "cancel", first.parent.id)
    assert ran.out == f"{first.parent.id} cancelled, with 3 jobs below it; 1 running job below it asked to stop\n"
    ran = await waybill("jobs", "cancel", second.parent.id, "--json")
    assert (ran.json["results"][0]["below"], ran.json["results"][0]["stopping_below"]) == (4, [])
    again = await waybill("jobs", "retry", first.parent.id, second.parent.id)
    assert again.out == f"{first.parent.id} waits for its active children again\n{second.parent.id} queued again\n"
    assert await state(hot, running.id) is State.RUNNING


async def test_waiting_for_a_cancelled_family_ends_when_its_last_job_does(waybill: Waybill, hot: Connection) -> None:
    family = await enqueue_family(hot, NewJob(OTHER, "acme"), some(2))
    worker = await start_worker(hot)
    lease, _ = await take(hot, worker, 2)
    slow = await waybill("jobs", "cancel", family.parent.id, "--wait", "--timeout", "10ms")
    assert slow.code == 1
    assert "has not stopped yet" in slow.err
    for job_id in (lease.id, family.children[1].id):
        await settle(hot, worker.id, [(job_id, 1, RunOutcome(State.CANCELLED, "cancelled"))])
    other = await enqueue_family(hot, NewJob(OTHER, "acme"), some(1))
    (last,) = await take(hot, worker, 1)

    async def stop_when_asked() -> None:
        while not (await row(hot, last.id))["cancel_requested_at"]:
            await asyncio.sleep(0.01)
        await settle(hot, worker.id, [(last.id, last.token, RunOutcome(State.CANCELLED, "cancelled"))])

    ran, _ = await asyncio.gather(waybill("jobs", "cancel", other.parent.id, "--wait"), stop_when_asked())
    assert ran.code == 0
    assert await state(hot, last.id) is State.CANCELLED


async def test_waiting_for_a_cancelled_job_ends_when_it_does(waybill: Waybill, hot: Connection) -> None:
    worker, lease = await running_job(hot)

    async def stop_when_asked() -> None:
        while not (await row(hot, lease.id))["cancel_requested_at"]:
            await asyncio.sleep(0.01)
        await settle(hot, worker.id, [(lease.id, lease.token, RunOutcome(State.CANCELLED, "cancelled"))])

    ran, _ = await asyncio.gather(waybill("jobs", "cancel", lease.id, "--wait"), stop_when_asked())
    assert (ran.code, ran.out) == (0, f"{lease.id} cancelled\n")


async def test_waiting_tells_when_the_job_was_faster_or_too_slow(waybill: Waybill, hot: Connection) -> None:
    worker, lease = await running_job(hot)
    slow = await waybill("jobs", "cancel", lease.id, "--wait", "--timeout", "10ms")
    assert slow.code == 1
    assert "has not stopped yet" in slow.err

    async def finish() -> None:
        await succeed(hot, worker.id, [(lease.id, lease.token)])

    late, _ = await asyncio.gather(waybill("jobs", "cancel", lease.id, "--wait"), finish())
    assert late.code == 1  # refused because it had ended, or ended before it could be stopped
    assert "succeeded" in late.err
    assert (await waybill("jobs", "cancel", lease.id, "--timeout", "1s")).code == 2
