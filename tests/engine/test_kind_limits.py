"""Workers make their kinds' limits known when they start."""

from __future__ import annotations

from dataclasses import replace

from support import handlers
from support.engine import OTHER, WORK
from support.patience import eventually
from support.workers import StartWorker
from waybill.db.database import Connection
from waybill_engine.breaker import register_kinds
from waybill_engine.kind_limits import record_limits

LIMITS = "SELECT queue, max_attempts, max_crashes, time_limit FROM kinds WHERE name = $1"


async def limits(connection: Connection, kind: str) -> tuple[object, ...] | None:
    found = await connection.fetchrow(LIMITS, kind)
    return tuple(found) if found is not None else None


async def test_limits_are_recorded_and_renewed_beside_the_dependency(hot: Connection) -> None:
    await register_kinds(hot, {"work": ("gateway",)})
    assert await limits(hot, "work") == (None, None, None, None)
    await record_limits(hot, [WORK, OTHER])
    assert await limits(hot, "work") == ("default", 3, 3, 300.0)
    assert await limits(hot, "other") == ("default", 1, 3, 300.0)
    await record_limits(hot, [replace(WORK, queue="night", time_limit=0.1)])
    assert await limits(hot, "work") == ("night", 3, 3, 0.10000000149011612)
    assert await hot.fetchval("SELECT dependency FROM kinds WHERE name = 'work'") == "gateway"


async def test_limits_that_have_not_changed_are_not_written_again(hot: Connection) -> None:
    kind = replace(WORK, time_limit=0.1)  # which four bytes cannot hold exactly
    await record_limits(hot, [kind])
    written = await hot.fetchval("SELECT xmin::text FROM kinds")
    await record_limits(hot, [kind])
    assert await hot.fetchval("SELECT xmin::text FROM kinds") == written


async def test_once_a_worker_has_started_its_kinds_can_be_enqueued_by_name_alone(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker()

    async def known() -> bool:
        return await limits(connection, handlers.EFFECT.name) is not None

    await eventually(known)
    await connection.execute("SELECT waybill_enqueue($1, 'acme')", handlers.EFFECT.name)

    async def done() -> bool:
        return bool(await connection.fetchval("SELECT count(*) FROM effects") == 1)

    await eventually(done)
