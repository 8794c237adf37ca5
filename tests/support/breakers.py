"""Helpers for tests of circuit breakers: let a dependency fail, and claim through its gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg

from support.engine import TTL, start_worker, take_as
from waybill.db.database import Connection
from waybill_engine import ClaimedJob, JobKind
from waybill_engine.breaker import BreakerPolicy, register_kinds
from waybill_engine.breaker_counts import CallCount, record
from waybill_engine.lease import WorkerInfo, renew
from waybill_engine.retry import RetryPolicy

CONVERTER = "converter"
CONVERT = JobKind("convert", dependencies=(CONVERTER,), retry=RetryPolicy(retries=2, base=10.0, jitter=0.0))
PREVIEW = JobKind("preview", dependencies=(CONVERTER,))
KINDS: Mapping[str, Sequence[str]] = {CONVERT.name: (CONVERTER,), PREVIEW.name: (CONVERTER,), "work": ()}
POLICY = BreakerPolicy()


async def converter_worker(connection: Connection) -> WorkerInfo:
    await register_kinds(connection, KINDS)
    return await start_worker(connection, kinds=tuple(KINDS))


async def standing(connection: Connection, name: str = CONVERTER) -> asyncpg.Record:
    row = await connection.fetchrow("SELECT * FROM breakers WHERE name = $1", name)
    assert row is not None, f"nothing ever happened to {name}"
    return row


async def state_of(connection: Connection, name: str = CONVERTER) -> str:
    return str(await connection.fetchval("SELECT state FROM breakers WHERE name = $1", name) or "closed")


async def breaker_events(connection: Connection, name: str = CONVERTER) -> list[str]:
    rows = await connection.fetch("SELECT event FROM breaker_events WHERE name = $1 ORDER BY id", name)
    return [row["event"] for row in rows]


async def fail(connection: Connection, times: int = 10, policy: BreakerPolicy = POLICY) -> bool:
    """Record `times` failed calls of jobs that had failed before. Returns whether that opened the breaker."""
    return bool(await record(connection, [CallCount(CONVERTER, times, times)], policy))


async def claim_gated(
    connection: Connection, worker: WorkerInfo, limit: int = 100, policy: BreakerPolicy = POLICY
) -> list[ClaimedJob]:
    """Claim jobs of the converter as a worker does: as many as the gate allows, marked as probes."""
    await renew(connection, worker.id, TTL)
    return await take_as(
        connection,
        worker.id,
        worker.queues,
        [CONVERT.name, PREVIEW.name],
        limit,
        dependencies=KINDS,
        policy=policy,
    )
