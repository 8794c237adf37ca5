"""A worker's metrics and probes: one process, several, frozen ones, and one that is told to stop."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx
import psutil
import pytest

from support import handlers
from support import rude_handlers as rude
from support.child_processes import free_port
from support.patience import PATIENCE, eventually
from support.scrapes import OPENMETRICS, Scrape, scrape
from support.workers import SLOW, StartWorker, all_ended, until_started
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue, enqueue_many

pytestmark = pytest.mark.timeout(120)


async def probe(port: int, path: str) -> tuple[int, str]:
    """The status of a probe and the reason it gives; 0 while nobody listens."""
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        try:
            answer = await client.get(f"http://127.0.0.1:{port}{path}")
        except httpx.TransportError:
            return 0, ""
        return answer.status_code, answer.json().get("reason", "")


async def becomes(port: int, path: str, status: int) -> str:
    async def look() -> list[str]:
        found, reason = await probe(port, path)
        return [reason] if found == status else []

    return (await eventually(look, within=60, every=0.1, what=f"{path} answers {status}"))[0]


async def test_a_worker_that_was_told_to_stop_is_ready_and_alive_until_its_last_job_has_ended(
    connection: Connection, start_worker: StartWorker, gate: Path
) -> None:
    port = free_port()
    worker = start_worker(worker_metrics_port=port, shutdown_grace=30, **SLOW)
    await becomes(port, "/readyz", 200)
    await enqueue(connection, NewJob(handlers.GATED, "acme", {"gate": str(gate)}))
    await until_started(gate)

    worker.signal(signal.SIGTERM)

    async def draining() -> bool:
        return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM workers WHERE state = 'draining')"))

    await eventually(draining)
    assert (await probe(port, "/readyz"), (await probe(port, "/livez"))[0]) == ((200, ""), 200)
    (gate / "open").touch()
    assert await worker.ended() == 0
    assert (await probe(port, "/livez"))[0] == 0


async def test_several_processes_answer_as_one_and_a_frozen_one_is_left_out(
    connection: Connection, start_worker: StartWorker
) -> None:
    port = free_port()
    supervisor = start_worker(worker_processes=2, worker_metrics_port=port, **SLOW)
    await becomes(port, "/readyz", 200)
    await enqueue_many(connection, [NewJob(handlers.EFFECT, "acme") for _ in range(200)])
    await eventually(lambda: all_ended(connection))
    kind = handlers.EFFECT.name

    async def all_counted() -> Scrape | None:
        seen = await scrape(port, OPENMETRICS)
        done = seen.find("waybill_jobs_finished_total", kind=kind, outcome="succeeded")
        return seen if sum(one.value for one in done) == 200 and len(done) == 2 else None

    seen = await eventually(all_counted, every=0.1)
    assert seen is not None
    assert {one.labels["process"] for one in seen.samples} == {"supervisor", "1", "2"}
    assert seen.value("waybill_job_end_to_end_seconds_count", kind=kind) == 200
    assert seen.value("process_resident_memory_bytes", process="2") > 0
    assert seen.value("waybill_processes_silent_total", process="supervisor") == 0

    frozen = psutil.Process(supervisor.pid).children()[0]
    frozen.suspend()
    try:
        seen = await scrape(port)
        assert len({one.labels["process"] for one in seen.samples}) == 2, "the supervisor and the one that answers"
        assert (await scrape(port)).value("waybill_processes_silent_total", process="supervisor") >= 1
        status, reason = await probe(port, "/livez")
        assert (status, "it does not answer" in reason) == (503, True)
        assert (await probe(port, "/readyz"))[0] == 200, "the other one claims jobs"
    finally:
        frozen.resume()
    await becomes(port, "/livez", 200)
    frozen.kill()
    await becomes(port, "/livez", 200)


async def test_a_worker_whose_loop_is_blocked_still_shows_its_numbers(
    connection: Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    port, release = free_port(), tmp_path / "release"
    start_worker(worker_metrics_port=port, worker_handlers="support.handlers,support.rude_handlers", **SLOW)
    await becomes(port, "/readyz", 200)
    await enqueue(connection, NewJob(rude.BLOCK_LOOP, "acme", {"folder": str(tmp_path), "until": str(release)}))

    async def blocked() -> bool:
        return (tmp_path / "blocked").exists()

    await eventually(blocked, what="the handler blocks the loop")
    since = time.monotonic()

    async def for_long() -> bool:
        return time.monotonic() - since > 1.0  # the loop is looked at every half second

    try:
        seen = await scrape(port)
        assert seen.value("waybill_jobs_claimed_total", kind=rude.BLOCK_LOOP.name) == 1
        assert (await probe(port, "/livez"))[0] == 200, "not for so short a time"
        await eventually(for_long)
    finally:
        release.touch()

    async def felt() -> bool:
        lag = await scrape(port)
        return lag.value("waybill_event_loop_lag_seconds_sum") > 0.2

    await eventually(felt, every=0.1, what="the lag shows that it was blocked")


async def test_exemplars_lead_from_a_bucket_to_the_trace_of_a_job(
    connection: Connection, start_worker: StartWorker
) -> None:
    port = free_port()
    nobody = f"http://127.0.0.1:{free_port()}"  # a collector that is away costs nothing
    start_worker(worker_metrics_port=port, otlp_endpoint=nobody, **SLOW)
    await becomes(port, "/readyz", 200)
    job = await enqueue(connection, NewJob(handlers.EFFECT, "acme"))
    await eventually(lambda: all_ended(connection))

    async def found() -> dict[str, set[str]] | None:
        seen = await scrape(port, OPENMETRICS)
        names = ("waybill_job_running_seconds_bucket", "waybill_job_end_to_end_seconds_bucket")
        traces = {
            name: {one.exemplar.labels["trace_id"] for one in seen.find(name) if one.exemplar is not None}
            for name in names
        }
        return traces if all(traces.values()) else None

    traces = await eventually(found, every=0.1, what="both histograms have an exemplar")
    assert traces is not None
    assert set().union(*traces.values()) == {job.id.hex}
    assert "trace_id" not in (await scrape(port)).text
