"""A worker renews its lease whatever its jobs do, and acts on what the answer says about them."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import asyncpg
import pytest

from support import handlers
from support import rude_handlers as rude
from support.engine import take_as
from support.network import network
from support.patience import eventually
from support.pgbouncer import installed, pgbouncer
from support.rude_handlers import BOTH
from support.workers import (
    SLOW,
    StartWorker,
    beat,
    started_runs,
    the_end,
    the_worker,
    until_started,
)
from waybill.db.database import Connection
from waybill_engine import JobKind, NewJob, enqueue, enqueue_many
from waybill_engine.control import pause
from waybill_engine.rescue import rescue_worker

BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid))"


async def test_a_worker_declared_gone_drops_what_it_runs_and_goes_on_under_a_new_id(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    worker = start_worker(worker_concurrency=1, **SLOW)
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    old = await the_worker(connection)
    await pause(connection, "default")  # its job stays where the rescue puts it
    await rescue_worker(connection, old)
    await connection.execute("SELECT pg_notify('waybill_control', $1)", str(old))

    async def dropped() -> bool:
        return "lease_lost" in worker.text

    await eventually(dropped)  # from this heartbeat, not from the next
    after = await enqueue(connection, NewJob(JobKind("noop", queue="other"), "acme"))
    await connection.execute("UPDATE jobs SET queue = 'default' WHERE id = $1", after.id)
    await connection.execute("DELETE FROM queues")
    await connection.execute("SELECT pg_notify('waybill_jobs', 'default')")

    async def done() -> bool:
        return bool(await connection.fetchval("SELECT state = 'succeeded' FROM jobs WHERE id = $1", after.id))

    await eventually(done)
    new = await connection.fetchval("SELECT worker_id FROM job_events WHERE job_id = $1", after.id)
    assert new != old
    assert await connection.fetchval("SELECT pid FROM workers WHERE id = $1", new) == worker.pid


async def test_a_run_that_is_not_ours_any_more_is_stopped_at_the_next_heartbeat(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    worker = start_worker(**SLOW)
    job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    await connection.execute(
        "UPDATE jobs SET state = 'cancelled', lease_owner = NULL, finished_at = now() WHERE id = $1", job.id
    )
    await beat(connection, await the_worker(connection))

    async def dropped() -> bool:
        return "lease_lost" in worker.text

    await eventually(dropped)


async def test_a_claim_whose_answer_was_lost_is_given_back_when_it_was_seen_twice(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    start_worker(worker_concurrency=1, **SLOW)
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    worker = await the_worker(connection)
    job = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    assert await take_as(connection, worker, ["default"], ["noop"], 1)  # as it would have, had it heard the answer
    state = "SELECT state FROM jobs WHERE id = $1"

    await beat(connection, worker)
    await beat(connection, worker)  # the first has been acted upon when the second is answered

    async def released() -> bool:
        return bool(await connection.fetchval(state, job.id) == "queued")

    await eventually(released)
    events = await connection.fetch("SELECT event, at FROM job_events WHERE job_id = $1", job.id)
    assert [row["event"] for row in events] == ["released"]


async def test_a_claim_under_way_is_not_given_back(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    start_worker(worker_concurrency=1, **SLOW)
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    worker = await the_worker(connection)
    await beat(connection, worker)  # the one its listener asks for when it starts is over
    job = await enqueue(connection, NewJob(handlers.NOOP, "acme"))
    assert await take_as(connection, worker, ["default"], ["noop"], 1)

    await beat(connection, worker)
    await asyncio.sleep(0.3)  # nothing may happen, so there is nothing to wait for
    assert await connection.fetchval("SELECT count(*) FROM job_events WHERE job_id = $1", job.id) == 0


async def test_work_that_blocks_a_cpu_for_three_lease_lengths_keeps_its_lease(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(lease_ttl=1, heartbeat_interval=0.25)
    start_worker(lease_ttl=1, heartbeat_interval=0.25)  # would rescue it
    job = await enqueue(connection, NewJob(handlers.BURN, "acme", {"seconds": 3}))

    row = await the_end(connection, job.id)

    assert (row["state"], row["lease_token"], row["crashes"]) == ("succeeded", 1, 0)


async def test_ends_that_wait_for_a_lock_do_not_starve_the_heartbeat(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    start_worker(worker_handlers=BOTH)
    jobs = await enqueue_many(connection, [NewJob(rude.LOCKED, "acme", {"gate": str(gate)}) for _ in range(8)])

    async def all_started() -> bool:
        return len(started_runs(gate)) == 8

    await eventually(all_started)
    other = await asyncpg.connect(database_url)
    async with other.transaction():
        # Somebody looks at these jobs in a transaction, and goes to lunch.
        await other.execute("SELECT FROM jobs WHERE id = ANY ($1) FOR UPDATE", [job.id for job in jobs])
        (gate / "open").touch()

        async def ends_wait() -> bool:
            return bool(await connection.fetchval(BLOCKED, other.get_server_pid()) >= 1)

        await eventually(ends_wait)
        for _ in range(2):  # the first renewal may have begun before they waited
            await beat(connection, await the_worker(connection))
    await other.close()


# Cut off from the database


async def test_a_worker_that_is_cut_off_stops_its_runs_when_its_lease_has_ended(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    """It cannot hear that another worker has its job by then, and two would do the work at the same time."""
    async with network(database_url) as (between, url):
        cut_off = start_worker(url, lease_ttl=3, heartbeat_interval=1, worker_concurrency=1)
        job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
        await until_started(gate, 1)
        between.cut()

        async def dropped() -> bool:
            return "lease_lost" in cut_off.text

        await eventually(dropped)
        assert "lease_ran_out" in cut_off.text
        assert await connection.fetchval("SELECT state FROM jobs WHERE id = $1", job.id) == "running", "nobody knows"

        between.mend()

        async def runs_again() -> bool:  # its own, released when it was back, or taken from it by now
            return len(started_runs(gate)) >= 2

        await eventually(runs_again)
        (gate / "open").touch()
        row = await the_end(connection, job.id)
    assert (row["state"], row["attempts"]) == ("succeeded", 0)


async def test_a_worker_whose_claim_the_database_forgot_runs_the_job_once_more_and_not_twice(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    """After a failover to a standby that lagged behind it claims the same job again, under the same token."""
    worker = start_worker(worker_concurrency=2, **SLOW)
    # The first heartbeat would notice it, too, if the job ran by then; the next one comes too late for this test.
    beaten = "SELECT count(*) FROM workers WHERE last_seen_at > started_at"
    await eventually(lambda: connection.fetchval(beaten))
    job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate, 1)
    old = await the_worker(connection)
    forget = "UPDATE jobs SET state = 'queued', lease_owner = NULL, lease_token = lease_token - 1 WHERE id = $1"
    await connection.execute(forget, job.id)
    await connection.execute("SELECT pg_notify('waybill_jobs', 'default')")

    await until_started(gate, 2)
    assert "claims_forgotten" in worker.text
    (gate / "open").touch()
    row = await the_end(connection, job.id)

    assert row["state"] == "succeeded"
    done = await connection.fetch("SELECT worker_id FROM job_events WHERE job_id = $1 AND event = 'succeeded'", job.id)
    assert [one["worker_id"] for one in done] != [old]
    assert await connection.fetchval("SELECT state FROM workers WHERE id = $1", old) == "stopped"


async def test_a_loop_that_cannot_reach_the_database_does_not_stop_the_rescue_of_others(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    async with network(database_url) as (between, url):
        between.refuse("LISTEN ")
        victim = start_worker(worker_concurrency=1)
        job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
        await until_started(gate, 1)
        start_worker(url)
        victim.kill()

        await until_started(gate, 2)
        (gate / "open").touch()
        assert (await the_end(connection, job.id))["state"] == "succeeded"


@pytest.mark.skipif(not installed(), reason="pgbouncer is not installed (Debian's package pgbouncer)")
async def test_behind_pgbouncer_a_lock_on_all_jobs_costs_nobody_a_lease(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    with pgbouncer(database_url) as pooled:
        start_worker(pooled, database_pgbouncer="true", poll_interval=0.2)
        job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
        await until_started(gate, 1)
        other = await asyncpg.connect(database_url)
        async with other.transaction():
            await other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
            expires = "SELECT max(lease_expires_at) FROM workers"
            for _ in range(3):
                before = await connection.fetchval(expires)

                async def renewed(before: datetime = before) -> bool:
                    return bool(await connection.fetchval(expires) > before)

                await eventually(renewed)
        await other.close()
        (gate / "open").touch()
        row = await the_end(connection, job.id)
    assert (row["state"], row["lease_token"]) == ("succeeded", 1)
