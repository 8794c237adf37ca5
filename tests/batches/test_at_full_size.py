"""Ten thousand files: on several workers that are killed again and again, and in memory that stays flat."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.api_server import Api
from support.batch_desk import batch, counted, downloaded, files, made
from support.clock import Clock
from support.customers import Customer
from support.engine import Connect, find_contradictions
from support.gateway import Gateway
from support.memory import proportional
from support.packs import SECRET
from support.patience import eventually
from support.stack import Stack
from support.workers import StartWorker, worker_starter
from support.zips import zipped

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]

FILES = 10_000
EVERY_TENTH = 10
"""So many files have the content of the one before them."""
FLAT = 32.0
"""Megabytes by which a process may grow from a batch of a hundred files to one of ten thousand."""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def big(number: int, dice: random.Random) -> bytes:
    """A ZIP with so many files: texts, one in ten like the one before it, and one in a hundred a picture."""
    members: list[tuple[str, bytes]] = []
    for one in range(number):
        content = f"{one - (one % EVERY_TENTH == 1)} {dice.random() if one % EVERY_TENTH != 1 else ''}\n".encode() * 20
        if one % EVERY_TENTH == 1:
            content = members[-1][1]
        if one % 100 == 55:
            members.append((f"{one % 7}/{one}.png", PNG + str(one).encode()))
        else:
            members.append((f"{one % 7}/{one}.txt", content))
    return zipped(*members)


@pytest.fixture
def start_worker(database_url: str, tmp_path: Path) -> Iterator[StartWorker]:
    with worker_starter(database_url, tmp_path, program="waybill_worker") as start:
        yield start


async def test_ten_thousand_files_on_workers_that_are_killed_at_random(
    api: Api, start_worker: StartWorker, connect: Connect, clock: Clock, folder: Path, tmp_path: Path
) -> None:
    gateway = Gateway(tmp_path / "gateway", gateway_secret=SECRET, gateway_processes="2")
    settings = {
        "worker_handlers": "",
        "storage_url": f"file://{folder}",
        "gateway_url": gateway.url,
        "gateway_secret": SECRET,
        "worker_processes": 1,
    }
    dice, hot = random.Random(17), await connect()
    person = api.client(await api.key("acme", "batches:read", "batches:write"))
    new = await made(person, big(FILES, dice))
    workers = [start_worker(**settings) for _ in range(3)]
    kills = 0
    try:
        while (now := await batch(person, new))["finished_at"] is None:
            await asyncio.sleep(dice.uniform(0.3, 1.5))
            if kills < 25:
                # Who is hit again and again is taken for the killer of its workers. These did nothing.
                await hot.execute("UPDATE jobs SET crashes = 0 WHERE state <> 'running' AND crashes > 0")
                workers.pop(dice.randrange(len(workers))).kill()
                kills += 1
                workers.append(start_worker(**settings))
    finally:
        gateway.close()
    print(f"{kills} workers were killed, {now['counts']}")
    pictures = FILES // 100
    assert kills >= 5
    assert counted(now) == {"files": FILES, "complete": FILES - pictures, "failed": pictures}
    assert {name: count for name, count in now["summary"]["counts"].items() if count} == counted(now)
    assert sum(each["files"] for each in now["summary"]["folders"]["folders"]) == FILES
    found = await files(person, new)
    assert len({file["doc_id"] for file in found}) == len({file["path"] for file in found}) == FILES
    assert sum(file["reused"] for file in found) == FILES // EVERY_TENTH

    async def quiet() -> bool:
        return not await hot.fetchval("SELECT EXISTS (SELECT FROM jobs WHERE state IN ('queued', 'running'))")

    await eventually(quiet, within=60)
    assert await hot.fetchval("SELECT count(*) FROM jobs WHERE kind = 'summarize_run' AND state = 'succeeded'") == 1
    assert await hot.fetchval("SELECT count(*) FROM jobs WHERE state <> 'succeeded'") == 0
    assert await find_contradictions(hot) == []
    got = await downloaded(person, new)
    assert len(got) == FILES - pictures + 2


class Peak:
    """The most memory that processes used while the block ran, without what was there before them."""

    def __init__(self, stack: Stack, *names: str) -> None:
        self._pids = {name: stack.pid(name) for name in names}
        self.most: dict[str, float] = dict.fromkeys(names, 0.0)

    async def __aenter__(self) -> Peak:
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()

    async def _watch(self) -> None:
        while True:
            for name, pid in self._pids.items():
                self.most[name] = max(self.most[name], await asyncio.to_thread(proportional, pid))
            await asyncio.sleep(0.1)


async def test_memory_is_flat_between_a_hundred_files_and_ten_thousand(database_url: str, tmp_path: Path) -> None:
    stack = Stack(
        database_url,
        tmp_path,
        shared_imports=False,
        WAYBILL_WORKER_PROCESSES="1",
        WAYBILL_API_READS_PER_MINUTE="0",
        WAYBILL_API_ADDRESS_READS_PER_MINUTE="0",
    )
    dice, customer = random.Random(3), Customer(stack.url)

    async def whole_way(number: int) -> dict[str, float]:
        archive = await asyncio.to_thread(big, number, dice)
        async with Peak(stack, "api", "worker") as peak:
            new = await made(customer.http, archive)

            async def over() -> dict[str, Any] | None:
                found = await batch(customer.http, new)
                return found if found["finished_at"] else None

            ended = await eventually(over, within=900, every=0.5)
            assert ended is not None
            assert ended["status"] in ("complete", "complete_with_errors")
            await files(customer.http, new)
            async with customer.http.stream("GET", f"/api/batches/{new}/download") as answer:
                assert answer.status_code == httpx.codes.OK
                async for _ in answer.aiter_bytes():
                    pass
        return peak.most

    try:
        await stack.start_all("api", "gateway", "worker")
        await whole_way(100)  # warms up
        small = await whole_way(100)
        large = await whole_way(FILES)
    finally:
        await customer.leave()
        stack.close()
    grown = {name: large[name] - small[name] for name in small}
    print(f"{small} MB with 100 files, {large} MB with {FILES}: {grown}")
    assert {name: more for name, more in grown.items() if more > FLAT} == {}
