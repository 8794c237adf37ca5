"""Answers get lost, connections die without a word, Postgres goes away: the worker goes on, and no job is blamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from support import handlers
from support import rude_handlers as rude
from support.network import network
from support.patience import eventually
from support.rude_handlers import BOTH
from support.server import embedded
from support.workers import (
    StartWorker,
    all_ended,
    counts,
    started_runs,
    until_started,
)
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill_cli.local.postgres import EmbeddedPostgres
from waybill_engine import JobKind, NewJob, enqueue, enqueue_many


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO workers",  # register
        "SET state = 'running'",  # claim
        "SET state = 'succeeded'",  # buffered completion, and the one inside complete()
        "SET state = CASE",  # settle
        "SET last_seen_at",  # heartbeat
        "COMMIT",
        "SET progress =",
    ],
)
async def test_an_answer_lost_on_the_way_costs_nothing_and_repeats_nothing(
    connection: Connection, start_worker: StartWorker, database_url: str, statement: str
) -> None:
    async with network(database_url) as (between, url):
        between.lose_answer(statement)
        worker = start_worker(url, worker_concurrency=4)
        await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme", {"seconds": 0.1}) for _ in range(10)])
        await enqueue_many(connection, [NewJob(handlers.NOOP, "acme") for _ in range(10)])
        await enqueue(connection, NewJob(handlers.FAIL, "acme", {"times": 1}))

        await eventually(lambda: all_ended(connection))

        assert worker.process.poll() is None
        assert await counts(connection) == {"succeeded": 21}
        assert await connection.fetchval("SELECT count(*) FROM effects") == 10
        assert await connection.fetchval("SELECT count(DISTINCT job_id) FROM effects") == 10
        assert await connection.fetchval("SELECT sum(crashes) FROM jobs") == 0
        assert await connection.fetchval("SELECT sum(attempts) FROM jobs") == 1
        assert between.lost == [statement.encode()] or statement == "SET progress ="


async def test_connections_that_die_silently_do_not_cost_the_lease(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    async with network(database_url) as (between, url):
        start_worker(url, lease_ttl=6, heartbeat_interval=2, worker_concurrency=61)
        job = await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))

        async def started() -> bool:
            return bool(started_runs(gate))

        await eventually(started)
        # A burst of failures, so that every hot connection is in use and stays in the pool.
        burst = [NewJob(handlers.FAIL, "acme", {"permanent": True}) for _ in range(60)]
        await enqueue_many(connection, burst)

        async def over() -> bool:
            return await counts(connection) == {"running": 1, "failed": 60}

        await eventually(over)
        between.swallow()  # a firewall forgot them; whoever connects anew gets through
        expires = "SELECT max(lease_expires_at) FROM workers"
        before = await connection.fetchval(expires)

        async def renewed() -> bool:
            return bool(await connection.fetchval(expires) > before)

        await eventually(renewed, within=6, what="the lease is renewed over a new connection before it runs out")
        (gate / "open").touch()
        await eventually(lambda: all_ended(connection))
        assert await connection.fetchval("SELECT lease_token FROM jobs WHERE id = $1", job.id) == 1


@pytest.mark.heavy
async def test_a_table_locked_for_almost_a_lease_does_not_cost_the_lease(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    """A migration takes its lock: the renewal waits, and must not be late when the lock is gone."""
    for _ in range(2):
        start_worker(lease_ttl=3, heartbeat_interval=1.5, rescue_interval=0.05)
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))

    async def started() -> bool:
        return bool(started_runs(gate))

    await eventually(started)
    other = await asyncpg.connect(database_url)
    last = await connection.fetchval("SELECT max(last_seen_at) FROM workers")

    async def just_renewed() -> bool:
        return bool(await connection.fetchval("SELECT min(last_seen_at) FROM workers") > last)

    await eventually(just_renewed)
    async with other.transaction():
        await other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        await asyncio.sleep(2.9)  # the subject of the test: almost as long as the lease
    for _ in range(2):  # renewals after the lock was gone
        last = await connection.fetchval("SELECT max(last_seen_at) FROM workers")
        await eventually(just_renewed)
    (gate / "open").touch()
    await other.close()
    await eventually(lambda: all_ended(connection))
    assert await connection.fetchval("SELECT count(*) FROM workers WHERE state = 'gone'") == 0
    assert await connection.fetchval("SELECT sum(crashes + attempts) FROM jobs") == 0


async def test_a_database_that_is_read_only_for_a_while_costs_nobody_anything(
    connection: Connection, start_worker: StartWorker, database_url: str, gate: Path
) -> None:
    """As after a failover, until the standby is promoted."""
    worker = start_worker()
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))

    async def started() -> bool:
        return bool(started_runs(gate))

    await eventually(started)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    kick = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'waybill-worker'"
    await connection.execute(kick)

    async def noticed() -> bool:
        return "database_lost" in worker.text

    await eventually(noticed)
    await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    await connection.execute(kick)
    (gate / "open").touch()
    await eventually(lambda: all_ended(connection))
    assert worker.process.poll() is None
    assert await connection.fetchval("SELECT sum(crashes + attempts) FROM jobs") == 0


@asynccontextmanager
async def an_outage(server: EmbeddedPostgres) -> AsyncIterator[None]:
    server.stop("fast")
    yield
    server.start()


@pytest.mark.parametrize(("kind", "end"), [(rude.QUIET, "succeeded"), (rude.LOCKED, "failed")])
async def test_an_end_that_falls_into_an_outage_is_written_after_it(
    start_worker: StartWorker, gate: Path, kind: JobKind, end: str
) -> None:
    with embedded() as server:
        url = server.create_database("waybill")
        await upgrade(url)
        worker = start_worker(url, worker_handlers=BOTH, lease_ttl=20, heartbeat_interval=0.5)
        connection = await asyncpg.connect(url)
        await enqueue_many(connection, [NewJob(kind, "acme", {"gate": str(gate)}) for _ in range(3)])
        await until_started(gate, 3)
        await connection.close()
        async with an_outage(server):
            (gate / "open").touch()

            async def lost() -> bool:
                return "database_lost" in worker.text

            await eventually(lost)
        connection = await asyncpg.connect(url)
        await eventually(lambda: all_ended(connection))
        rows = await connection.fetch("SELECT state, lease_token FROM jobs")
        await connection.close()
        assert {tuple(row) for row in rows} == {(end, 1)}
