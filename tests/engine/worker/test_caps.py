"""Caps, kept by real processes that know nothing of each other."""

from __future__ import annotations

from pathlib import Path

from support import handlers
from support.patience import eventually
from support.timed_handlers import BOTH, TIMED, TIMED_TOO, most_at_once, spans
from support.workers import StartWorker, all_ended, counts, started_runs
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue_many
from waybill_engine.caps import list_caps, remove_cap, set_cap


async def test_three_processes_never_run_more_than_the_caps_at_once_though_one_is_killed(
    connection: Connection, start_worker: StartWorker
) -> None:
    await set_cap(connection, 2, tenant="acme")
    await set_cap(connection, 3, kind="timed_too")
    payload = {"seconds": 0.02}
    whose = [(TIMED, "acme"), (TIMED_TOO, "other"), (TIMED, "free")]
    await enqueue_many(connection, [NewJob(kind, tenant, payload) for kind, tenant in whose for _ in range(60)])
    workers = [start_worker(worker_handlers=BOTH, worker_concurrency=6) for _ in range(3)]

    async def some_done() -> bool:
        done = "SELECT count(*) FROM effects JOIN jobs ON jobs.id = job_id WHERE tenant = 'acme'"
        return bool(await connection.fetchval(done) >= 10)

    await eventually(some_done)
    workers[0].kill()
    await eventually(lambda: all_ended(connection), within=60)

    assert await counts(connection) == {"succeeded": 180}
    assert most_at_once(await spans(connection, "tenant = 'acme'")) == 2
    assert most_at_once(await spans(connection, "kind = 'timed_too'")) == 3
    assert most_at_once(await spans(connection, "tenant = 'free'")) > 3


async def test_workers_hear_of_a_changed_cap_at_once(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    await set_cap(connection, 0, tenant="acme")
    start_worker(worker_concurrency=20, poll_interval=60)
    payload = {"gate": str(gate)}
    await enqueue_many(connection, [NewJob(handlers.GATED, "acme", payload) for _ in range(8)])
    await enqueue_many(connection, [NewJob(handlers.GATED, "free", payload)])

    async def started(count: int) -> None:
        async def as_many() -> bool:
            return len(started_runs(gate)) >= count

        await eventually(as_many)
        assert len(started_runs(gate)) == count

    await started(1)
    await set_cap(connection, 3, tenant="acme")
    await started(1 + 3)
    await set_cap(connection, 5, tenant="acme")
    await started(1 + 5)
    await remove_cap(connection, tenant="acme")
    await started(1 + 8)
    (gate / "open").touch()
    await eventually(lambda: all_ended(connection))
    assert await counts(connection) == {"succeeded": 9}


async def test_a_kinds_default_cap_applies_from_the_start(connection: Connection, start_worker: StartWorker) -> None:
    """What the kind says is read when the worker starts, so it can come from a setting."""
    start_worker(worker_handlers="support.handlers", test_capped_at=3, shared_imports=False)
    cap = await eventually(lambda: the_cap(connection))
    assert cap == ("capped", 3)
    start_worker(worker_handlers="support.handlers", test_capped_at=0, shared_imports=False)

    async def lifted() -> bool:
        return await the_cap(connection) is None

    await eventually(lifted)


async def the_cap(connection: Connection) -> tuple[str | None, int] | None:
    caps = await list_caps(connection)
    assert len(caps) <= 1
    return (caps[0].kind, caps[0].most) if caps else None
