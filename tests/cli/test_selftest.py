"""`waybill selftest`: passes when the engine works, and says what is in the way when it does not."""

from __future__ import annotations

import asyncio

from support.command_line import Ran, Waybill
from support.engine import start_worker, take
from support.patience import eventually
from support.sick_gateway import answering, sick_gateway
from waybill.db.database import Connection
from waybill_engine import State
from waybill_engine.control import pause
from waybill_engine.finish import RunOutcome, settle, succeed
from waybill_engine.lease import Progress, WorkerInfo, write_progress


async def serving(hot: Connection) -> WorkerInfo:
    return await start_worker(hot, kinds=["selftest"])


async def states(hot: Connection) -> list[str]:
    return [row["state"] for row in await hot.fetch("SELECT state FROM jobs")]


async def test_it_passes_with_its_times_and_timeline(waybill: Waybill, hot: Connection) -> None:
    worker = await serving(hot)

    async def work() -> None:
        (lease,) = await eventually(lambda: take(hot, worker))
        await write_progress(hot, [Progress(lease.id, lease.token, lease.worker_id, 0.5, "step 1 of 2")])
        await succeed(hot, worker.id, [(lease.id, lease.token)])

    ran, _ = await asyncio.gather(waybill("selftest", "--steps", 2, "--json"), work())
    assert ran.code == 0
    record = ran.json
    assert record["passed"] is True
    assert record["reason"] is None
    assert record["job"]["payload"] == {"steps": 2, "seconds_per_step": 0.2}
    assert record["waited_seconds"] >= 0
    assert record["ran_seconds"] >= 0
    assert [line["event"] for line in record["history"]] == ["enqueued", "started", "succeeded"]


async def test_a_gateway_that_does_not_trust_us_is_told(waybill: Waybill, hot: Connection) -> None:
    worker = await serving(hot)

    async def work() -> None:
        (lease,) = await eventually(lambda: take(hot, worker))
        await succeed(hot, worker.id, [(lease.id, lease.token)])

    async with sick_gateway(answering(401, b'{"detail": "WAYBILL_GATEWAY_SECRET must be the same."}')) as gateway:
        ran, _ = await asyncio.gather(waybill("selftest", WAYBILL_GATEWAY_URL=gateway.url), work())
    assert ran.code == 1
    assert "WAYBILL_GATEWAY_SECRET" in ran.err


async def test_a_failure_is_told_with_its_reason(waybill: Waybill, hot: Connection) -> None:
    worker = await serving(hot)

    async def work() -> None:
        (lease,) = await eventually(lambda: take(hot, worker))
        broken = RunOutcome(State.FAILED, "failed", code="UNKNOWN", message="gears are stuck")
        await settle(hot, worker.id, [(lease.id, lease.token, broken)])

    ran, _ = await asyncio.gather(waybill("selftest"), work())
    assert ran.code == 1
    assert "ended as failed: UNKNOWN: gears are stuck" in ran.err


async def given_up(waybill: Waybill) -> Ran:
    ran = await waybill("selftest", "--wait", "50ms")
    assert ran.code == 1
    assert "did not finish within 50 ms" in ran.err
    return ran


async def test_without_a_worker_it_says_so_and_leaves_nothing_behind(waybill: Waybill, hot: Connection) -> None:
    assert "no worker is running" in (await given_up(waybill)).err
    assert await states(hot) == ["cancelled"]


async def test_a_paused_queue_is_named(waybill: Waybill, hot: Connection) -> None:
    await serving(hot)
    await pause(hot, "default")
    assert "waybill queue resume default" in (await given_up(waybill)).err


async def test_workers_of_other_kinds_are_no_help(waybill: Waybill, hot: Connection) -> None:
    await start_worker(hot, kinds=["convert_pdf"])
    assert "none of the running workers serves kind selftest" in (await given_up(waybill)).err


async def test_a_busy_fleet_is_named(waybill: Waybill, hot: Connection) -> None:
    await serving(hot)
    assert "it is still waiting" in (await given_up(waybill)).err


async def test_a_job_that_runs_too_long_is_asked_to_stop(waybill: Waybill, hot: Connection) -> None:
    worker = await serving(hot)
    ran, _ = await asyncio.gather(waybill("selftest", "--wait", "2s"), eventually(lambda: take(hot, worker)))
    assert ran.code == 1
    assert "still running" in ran.err
    assert await hot.fetchval("SELECT cancel_requested_at IS NOT NULL FROM jobs")
