"""Why isn't it running? One short, true answer for any job."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pydantic_core
import pytest

from support.clock import Clock
from support.engine import OTHER, TTL, WORK, failure, one_job, running_job, some_jobs, start_worker, take
from waybill.db import Database
from waybill.db.database import Connection, driver
from waybill.errors import NotFound, StorageFull
from waybill.failures import classify
from waybill.ids import new_id
from waybill.messages import Message, languages, msg
from waybill_engine.caps import set_cap
from waybill_engine.control import cancel, pause, resume
from waybill_engine.explain import Reason, explain
from waybill_engine.finish import judge, settle, succeed
from waybill_engine.promotion import promote_due
from waybill_engine.rescue import rescue_worker


async def test_a_scheduled_job_says_until_when(hot: Connection) -> None:
    job = await one_job(hot, delay=3600)
    answer = await explain(hot, job)
    assert answer.reason is Reason.SCHEDULED
    assert f"{answer.facts['run_at']:%Y-%m-%d %H:%M:%S} UTC" in answer.sentence
    assert (answer.key, answer.params) == ("explain.scheduled", {"run_at": answer.facts["run_at"]})


async def test_a_job_waiting_for_its_retry_says_so(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await settle(hot, worker.id, [(claimed.id, claimed.token, judge(claimed, failure(), WORK.retry))])
    answer = await explain(hot, claimed.id)
    assert answer.reason is Reason.SCHEDULED
    assert "It failed once and is tried again then." in answer.sentence


async def test_a_job_that_is_due_is_no_longer_scheduled(hot: Connection, clock: Clock) -> None:
    job = await one_job(hot, delay=10)
    await clock.forward(11)
    await start_worker(hot)
    assert (await explain(hot, job)).reason is Reason.NEXT  # whoever promotes it does so within moments
    await promote_due(hot)
    assert (await explain(hot, job)).reason is Reason.NEXT


async def test_a_paused_queue_is_the_reason_with_its_reason(hot: Connection) -> None:
    await start_worker(hot)
    job = await one_job(hot)
    await pause(hot, "default", "the printer burns")
    answer = await explain(hot, job)
    assert answer.reason is Reason.QUEUE_PAUSED
    assert "(the printer burns)" in answer.sentence
    await resume(hot, "default")
    assert (await explain(hot, job)).reason is Reason.NEXT


async def test_a_kind_nobody_serves_waits_for_a_worker(hot: Connection, clock: Clock) -> None:
    job = await one_job(hot)
    await start_worker(hot, kinds=["other"])
    answer = await explain(hot, job)
    assert (answer.reason, answer.sentence) == (
        Reason.NO_WORKER,
        "No worker serves the kind work on the queue default.",
    )
    await start_worker(hot)
    assert (await explain(hot, job)).reason is Reason.NEXT
    await clock.forward(TTL + 1)  # it no longer reports
    assert (await explain(hot, job)).reason is Reason.NO_WORKER


async def test_the_number_of_jobs_ahead_is_what_is_claimed_first(hot: Connection) -> None:
    worker = await start_worker(hot)
    await some_jobs(hot, 3)
    job = await one_job(hot)
    await some_jobs(hot, 4)  # behind it
    await some_jobs(hot, 2, priority=5)  # before it, though younger
    answer = await explain(hot, job)
    assert (answer.reason, answer.facts["ahead"]) == (Reason.BEHIND_OTHERS, 5)
    assert answer.sentence == "It is waiting behind 5 jobs."

    first = await take(hot, worker, limit=5)
    assert job not in [claimed.id for claimed in first]
    answer = await explain(hot, job)
    assert (answer.reason, answer.facts["takes_turns"]) == (Reason.NEXT, False)
    assert [claimed.id for claimed in await take(hot, worker, limit=1)] == [job]


@pytest.mark.parametrize("other", [{"tenant": "aaa"}, {"tenant": "zzz"}, {"kind": OTHER}])
async def test_the_first_of_its_lane_takes_turns_with_other_lanes(hot: Connection, other: dict[str, Any]) -> None:
    await start_worker(hot)
    job = await one_job(hot)
    await some_jobs(hot, 10, **other)
    answer = await explain(hot, job)
    assert (answer.reason, answer.facts["takes_turns"]) == (Reason.NEXT, True)
    assert "takes turns with others" in answer.sentence


async def test_a_full_cap_is_the_reason_until_there_is_room(hot: Connection) -> None:
    worker = await start_worker(hot)
    first, second = await some_jobs(hot, 2)
    await set_cap(hot, 1, tenant="acme")
    assert (await explain(hot, first)).reason is Reason.NEXT
    (claimed,) = await take(hot, worker)
    answer = await explain(hot, second)
    assert answer.reason is Reason.CAP
    assert answer.sentence == "At most 1 job of tenant acme may run at once; 1 running now."
    assert answer.key == "explain.cap.tenant"
    await succeed(hot, worker.id, [(claimed.id, claimed.token)])
    assert (await explain(hot, second)).reason is Reason.NEXT
    await set_cap(hot, 0, tenant="acme", kind="work")
    both = await explain(hot, second)
    assert both.facts == {"tenant": "acme", "kind": "work", "most": 0, "running": 0}
    assert both.sentence == "At most 0 jobs of kind work of tenant acme may run at once; 0 running now."
    assert await take(hot, worker) == []


async def test_a_long_queue_is_not_counted_to_its_end(hot: Connection) -> None:
    await start_worker(hot)
    await some_jobs(hot, 1500)
    answer = await explain(hot, await one_job(hot))
    assert answer.sentence == "It is waiting behind more than 1,000 jobs."
    assert answer.facts == {"ahead": 1000, "or_more": True}


async def test_a_running_job_names_who_holds_it_and_until_when(hot: Connection, clock: Clock) -> None:
    worker, claimed = await running_job(hot)
    answer = await explain(hot, claimed.id)
    assert answer.reason is Reason.RUNNING
    assert f"Worker {worker.name} is running it; its lease lasts until" in answer.sentence
    await clock.forward(TTL + 1)
    assert "another worker takes the job" in (await explain(hot, claimed.id)).sentence


async def test_a_job_asked_to_stop_says_so(hot: Connection) -> None:
    _, claimed = await running_job(hot)
    await cancel(hot, claimed.id)
    assert (await explain(hot, claimed.id)).reason is Reason.STOPPING


async def test_a_suspect_waits_to_be_run_alone(hot: Connection) -> None:
    worker = await start_worker(hot)
    jobs = await some_jobs(hot, 2)
    await take(hot, worker)
    await rescue_worker(hot, worker.id)
    await start_worker(hot)
    assert (await explain(hot, jobs[0])).reason is Reason.ISOLATED


async def test_an_ended_job_says_how_it_ended(hot: Connection) -> None:
    worker, claimed = await running_job(hot)
    await succeed(hot, worker.id, [(claimed.id, claimed.token)])
    assert (await explain(hot, claimed.id)).sentence.startswith("It succeeded at ")

    worker, claimed = await running_job(hot)
    broken = failure(retryable=False)
    await settle(hot, worker.id, [(claimed.id, claimed.token, judge(claimed, broken, WORK.retry))])
    answer = await explain(hot, claimed.id)
    assert answer.reason is Reason.ENDED
    assert f"({broken.code.value}): {broken.message}" in answer.sentence


async def test_every_explanation_can_be_said_in_the_readers_language(hot: Connection, db: Database) -> None:
    worker, claimed = await running_job(hot)
    full = classify(StorageFull(msg("storage.full_try_again")))
    given_up = judge(claimed, replace(full, retryable=False), WORK.retry)
    await settle(hot, worker.id, [(claimed.id, claimed.token, given_up)])
    answer = await explain(hot, claimed.id)
    assert answer.key == "explain.ended_because.failed"
    at = answer.facts["finished_at"]
    stored = json.loads(pydantic_core.to_json(answer.params))
    for params in (answer.params, stored):  # as the engine has them, and as a program got them
        said = languages()["id"].tell(Message(answer.key, params))
        assert said == (
            f"Tugas ini gagal secara permanen pada {at:%d/%m/%Y pukul %H.%M.%S} UTC"
            " (IO_ERROR): Disk penuh. Silakan coba lagi setelah ada ruang."
        )
        assert str(Message(answer.key, params)) == answer.sentence
    async with db.transaction() as session:  # its connection reads JSON by itself
        assert await explain(await driver(session), claimed.id) == answer


async def test_a_job_that_is_not_there_is_not_found(hot: Connection) -> None:
    with pytest.raises(NotFound):
        await explain(hot, new_id())
