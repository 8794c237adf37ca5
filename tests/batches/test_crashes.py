"""Worker processes die at any step of a batch's way: every file is worked once, and summed up once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.api_server import Api
from support.batch_desk import batch, counted, files, made, result, text
from support.clock import Clock
from support.engine import Connect, find_contradictions
from support.gateway import Gateway
from support.packs import SECRET
from support.patience import PATIENCE, eventually
from support.workers import StartWorker, worker_starter
from support.zips import zipped
from waybill.db.database import Connection

pytestmark = pytest.mark.timeout(240)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)

# What a test holds, so that a worker comes exactly so far.
BEGIN = "SELECT FROM batches FOR UPDATE"
SOURCES = RESULTS = "LOCK TABLE job_artefacts IN EXCLUSIVE MODE"
ROWS = ENDS = "LOCK TABLE batch_files IN EXCLUSIVE MODE"
CHILDREN = "SELECT FROM jobs WHERE kind = 'summarize_run' FOR UPDATE"
SUMMARY = "SELECT FROM batches FOR UPDATE"
LAST_COMMIT = "SELECT id FROM jobs WHERE kind = 'summarize_run' FOR UPDATE"


@pytest.fixture
def start_worker(database_url: str, tmp_path: Path) -> Iterator[StartWorker]:
    with worker_starter(database_url, tmp_path, program="waybill_worker") as start:
        yield start


@asynccontextmanager
async def held(connection: Connection, what: str) -> AsyncIterator[None]:
    async with connection.transaction():
        await connection.execute(what)
        yield


async def blocked(looking: Connection, by: Connection) -> None:
    """Wait until somebody waits for what this connection holds."""

    async def waits() -> bool:
        return bool(
            await looking.fetchval(
                "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))",
                by.get_server_pid(),
            )
        )

    await eventually(waits, within=PATIENCE, what="a worker comes that far")


async def over(client: httpx.AsyncClient, batch_id: str) -> dict[str, Any]:
    async def ended() -> dict[str, Any] | None:
        found = await batch(client, batch_id)
        return found if found["finished_at"] else None

    found = await eventually(ended, within=PATIENCE, every=0.1)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "steps",
    [(BEGIN, SOURCES), (ROWS, CHILDREN), (RESULTS, ENDS), (SUMMARY, LAST_COMMIT)],
    ids=["unpacking", "making rows and jobs", "working files", "summing up"],
)
async def test_a_worker_that_dies_between_two_steps_costs_nothing(
    api: Api,
    browser: httpx.AsyncClient,
    gateway: Gateway,
    start_worker: StartWorker,
    connect: Connect,
    clock: Clock,
    folder: Path,
    steps: Sequence[str],
) -> None:
    settings = {
        "worker_handlers": "",
        "storage_url": f"file://{folder}",
        "gateway_url": gateway.url,
        "gateway_secret": SECRET,
    }
    hot, looking, other = await connect(), await connect(), await connect()
    twin = text()
    archive = zipped(
        ("a.txt", twin), ("twin.txt", twin), ("b.png", PNG), *((f"{number}.txt", text()) for number in range(80))
    )
    new = await made(browser, archive)
    for step in steps:
        if steps in ((RESULTS, ENDS), (SUMMARY, LAST_COMMIT)):
            await _come_to(hot, looking, start_worker, settings, steps)
        async with AsyncExitStack() as holding:
            async with held(hot, SUMMARY if step == LAST_COMMIT else step):
                worker = start_worker(**settings)
                await blocked(looking, hot)
                if step == LAST_COMMIT:  # nobody claims a job that is locked, so it has to run first
                    await holding.enter_async_context(held(other, LAST_COMMIT))
                else:
                    worker.kill()
            if step == LAST_COMMIT:
                await blocked(looking, other)
                worker.kill()
        await clock.forward(10)
    start_worker(**settings)
    ended = await over(browser, new)

    assert (ended["status"], counted(ended)) == ("complete_with_errors", {"files": 83, "complete": 82, "failed": 1})
    assert ended["summary"]["counts"] == {"files": 83, "complete": 82, "failed": 1}
    found = await files(browser, new)
    assert [file["path"] for file in found] == ["a.txt", "twin.txt", "b.png", *(f"{n}.txt" for n in range(80))]
    assert {file["reused"] for file in found if file["path"] != "twin.txt"} == {False}
    for number in (0, 1, 50, 82):
        assert (await result(browser, new, found[number]["doc_id"])).status_code == 200

    async def quiet() -> bool:
        return not await hot.fetchval(
            "SELECT EXISTS (SELECT FROM jobs WHERE state IN ('queued', 'running', 'scheduled'))"
        )

    await eventually(quiet, within=PATIENCE)
    rows = await hot.fetch("SELECT kind, count(*) FROM jobs WHERE state = 'succeeded' GROUP BY kind")
    assert {row["kind"]: row["count"] for row in rows} == {"process_batch": 1, "extract_file": 2, "summarize_run": 1}
    assert await find_contradictions(hot) == []
    named = {row[0] for row in await hot.fetch("SELECT storage_key FROM job_artefacts")}
    assert {
        row[0] for row in await hot.fetch("SELECT source_key FROM batch_files WHERE source_key IS NOT NULL")
    } <= named
    assert {
        row[0] for row in await hot.fetch("SELECT result_key FROM batch_files WHERE result_key IS NOT NULL")
    } <= named


async def _come_to(
    hot: Connection, looking: Connection, start_worker: StartWorker, settings: dict[str, Any], steps: Sequence[str]
) -> None:
    """Have a worker do all that comes before these steps, if that has not happened yet, and stop it."""
    kind = "extract_file" if steps == (RESULTS, ENDS) else "summarize_run"
    ready = "SELECT EXISTS (SELECT FROM jobs WHERE kind = $1 AND state IN ('queued', 'running'))"
    if await looking.fetchval(ready, kind):
        return
    before = ["process_batch"] if kind == "extract_file" else ["process_batch", "extract_file"]
    worker = start_worker(**settings, worker_kinds=",".join(before))

    async def there() -> bool:
        return bool(await looking.fetchval(ready, kind))

    await eventually(there, within=PATIENCE)
    worker.kill()
