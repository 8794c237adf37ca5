"""The engine at the size of a fleet: 50 worker processes, 5,000 tenants, 500 caps, on one real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg
import pytest

from support.patience import eventually
from support.timed_handlers import BOTH, TIMED, most_at_once, spans
from support.workers import StartWorker, all_ended, counts
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_many
from waybill_engine.caps import set_cap

_WORKERS = 50
_TENANTS = 5_000
_CAPPED = 500
_JOBS_EACH = 4
_NEWCOMERS = 20
_CALM = {"poll_interval": 5, "heartbeat_interval": 5, "lease_ttl": 60, "rescue_interval": 5}

_COMMITTED = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
_CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name <> ''"


def _payload(seconds: float = 0.05) -> dict[str, float]:
    return {"seconds": seconds}


@asynccontextmanager
async def _most_connections(url: str) -> AsyncIterator[list[int]]:
    """The highest number of connections seen while this is open, as the only item of a list."""
    most = [0]
    connection = await asyncpg.connect(url)

    async def watch() -> None:
        while True:
            most[0] = max(most[0], await connection.fetchval(_CONNECTED))
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    try:
        yield most
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await connection.close()


async def _written(connection: Connection) -> int:
    """Transactions so far, polls and heartbeats included. Server processes report theirs a second late."""
    await asyncio.sleep(2)
    return int(await connection.fetchval(_COMMITTED))


@pytest.mark.heavy
@pytest.mark.timeout(900)
async def test_fifty_workers_share_five_thousand_tenants(
    connection: Connection, start_worker: StartWorker, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tenants = [f"tenant-{number:04}" for number in range(_TENANTS)]
    for tenant in tenants[:_CAPPED]:
        await set_cap(connection, 1, tenant=tenant)
    async with _most_connections(database_url) as most:
        for _ in range(_WORKERS):
            start_worker(worker_handlers=BOTH, worker_concurrency=2, **_CALM)
        await eventually(
            lambda: connection.fetchval("SELECT count(*) >= $1 FROM workers WHERE state = 'active'", _WORKERS),
            within=180,
        )
        before = await _written(connection)
        jobs = [NewJob(TIMED, tenant, _payload()) for _ in range(_JOBS_EACH) for tenant in tenants]
        for start in range(0, len(jobs), 1_000):
            await enqueue_many(connection, jobs[start : start + 1_000])
        for number in range(_NEWCOMERS):
            await enqueue(connection, NewJob(TIMED, f"newcomer-{number}", _payload()))
            await asyncio.sleep(0.2)
        behind = await connection.fetchval("SELECT count(*) FROM jobs WHERE state = 'queued'")
        await eventually(lambda: all_ended(connection), within=600, every=0.5)
        transactions = await _written(connection) - before
    total = len(jobs) + _NEWCOMERS
    assert await counts(connection) == {"succeeded": total}
    waits: list[float] = await connection.fetchval(
        "SELECT array_agg(extract(epoch FROM started_at - created_at)::float8 ORDER BY started_at - created_at)"
        "  FROM jobs WHERE tenant LIKE 'newcomer-%'"
    )
    took: float = await connection.fetchval(
        "SELECT extract(epoch FROM max(finished_at) - min(created_at))::float8 FROM jobs"
    )
    for tenant in tenants[:_CAPPED:50]:
        assert most_at_once(await spans(connection, f"jobs.tenant = '{tenant}'")) == 1
    fair_round = _TENANTS * took / total
    with capsys.disabled():
        print(
            f"\n{_WORKERS} workers, {_TENANTS:,} tenants, {_CAPPED} caps: {total:,} jobs in {took:.0f} s,"
            f" {transactions / total:.2f} transactions a job, at most {most[0] / _WORKERS:.1f} connections a worker,"
            f" a newcomer behind {behind:,} jobs waits {waits[len(waits) // 2]:.2f} s (at most {waits[-1]:.2f} s;"
            f" a round is {fair_round:.0f} s)"
        )
    assert behind > total / 4, "the newcomers came when nobody waited"
    assert waits[len(waits) // 2] <= fair_round / 10
    assert waits[-1] <= fair_round
    assert transactions / total <= 4
    assert most[0] <= 6 * _WORKERS + 2
