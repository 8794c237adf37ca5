"""Kill -9 at any step leaves garbage at worst: never a row that names what is not there, and the next run finishes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.clock import Clock
from support.janitor import DAY, document, named_keys, result_key, stored_keys
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.storage import LocalStorage
from waybill_engine import erasure

TESTS = Path(__file__).parents[1]


class Victims:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def run(self, deadly: int) -> tuple[int, int]:
        """The exit code, and how many steps a run took that was left alive."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{deadly}\n".encode())
        code, steps = (await self._process.stdout.readline()).split()
        return int(code), int(steps)


@asynccontextmanager
async def victims(url: str, folder: Path) -> AsyncIterator[Victims]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "support.janitor_victim",
        url,
        str(folder),
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Victims(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def scene(hot: Connection, storage: LocalStorage, clock: Clock) -> uuid.UUID:
    """Something for every task that removes: old jobs in every final state, an erasure, orphans; and one that stays."""
    await document(hot, storage, unpublished=True)
    for state in ("failed", "cancelled"):
        await document(hot, storage, state)
    await document(hot, storage, tenant="leaving")
    await storage.put(result_key(new_id(), 1, "xml"), b"nobody's")
    stays = await document(hot, storage, pinned=True)
    await clock.forward(100 * DAY)
    await document(hot, storage, "failed")  # gone since yesterday
    await hot.execute("DELETE FROM jobs WHERE id = (SELECT max(id::text)::uuid FROM jobs)")
    await document(hot, storage, tenant="leaving")
    await erasure.request(hot, "leaving")
    return stays


async def check_after(number: int, deadly: int, hot: Connection, storage: LocalStorage, killed: Victims) -> None:
    """Whatever it left, no row lies; and the next one cleans up as if nothing had happened."""
    lost = await named_keys(hot) - await stored_keys(storage)
    assert lost == set(), f"killed at step {deadly}, rows name what is not there"
    await hot.execute("UPDATE janitor_lease SET expires_at = now()")  # two minutes later
    assert (await killed.run(0))[0] == 0, f"after a kill at step {deadly}"
    assert await hot.fetchval("SELECT count(*) FROM garbage") == 0
    assert await hot.fetchval("SELECT count(*) FROM jobs") == number
    assert await hot.fetchval("SELECT count(*) FROM erasures WHERE finished_at IS NULL") == 0
    assert await stored_keys(storage) == await named_keys(hot)
    assert len(await stored_keys(storage)) == 3 * number


async def kill_at_each(database_url: str, hot: Connection, tmp_path: Path, clock: Clock, steps: int | None) -> None:
    storage = LocalStorage(tmp_path / "storage")
    async with victims(database_url, tmp_path / "storage") as killed:
        await scene(hot, storage, clock)
        code, total = await killed.run(0)
        assert code == 0
        assert total > 100, "the scene has something for every task"
        await check_after(1, 0, hot, storage, killed)
        every = max(1, total // steps) if steps else 1
        number = 1
        for deadly in range(1, total, every):
            number += 1
            await scene(hot, storage, clock)
            code, _ = await killed.run(deadly)
            assert code == -signal.SIGKILL
            await check_after(number, deadly, hot, storage, killed)
        assert await hot.fetchval("SELECT count(*) FROM janitor_runs WHERE outcome = 'died'") > 0


async def test_killed_at_any_step_it_leaves_garbage_at_worst(
    database_url: str, hot: Connection, tmp_path: Path, clock: Clock
) -> None:
    await kill_at_each(database_url, hot, tmp_path, clock, steps=6)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
async def test_killed_at_every_step_it_leaves_garbage_at_worst(
    database_url: str, hot: Connection, tmp_path: Path, clock: Clock
) -> None:
    await kill_at_each(database_url, hot, tmp_path, clock, steps=None)
