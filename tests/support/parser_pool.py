"""A pool of parsers that misbehave on request (`support.rude_parses`), and how to ask and kill them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from support.patience import eventually
from waybill_gateway.pool import Blueprint, Pool
from waybill_gateway.sandbox.limits import ProcessLimits

MB = 1024 * 1024


class Bench:
    """A pool of rude parses, and how to ask it."""

    def __init__(self, pool: Pool, folder: Path) -> None:
        self.pool = pool
        self.folder = folder
        self.result = folder / "result"

    async def ask(self, do: str, *, seconds: float = 60, wait: float = 60, **call: Any) -> dict[str, Any]:
        note, _ = await self.pool.run({"do": do, **call}, self.result, seconds=seconds, wait=wait)
        return note

    async def wait_for_processes(self, count: int) -> None:
        async def there() -> bool:
            return len(self.pool.pids) == count

        await eventually(there, what=f"{count} processes")


@asynccontextmanager
async def running(
    folder: Path,
    *,
    function: str = "obey",
    processes: int = 1,
    documents: int = 100,
    resident: int = 1000 * MB,
    quiet: float = 3600,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Bench]:
    pool = Pool(
        Blueprint(
            f"support.rude_parses:{function}",
            ProcessLimits(memory=400 * MB, result=2 * MB),
            writable=(folder,),
        ),
        processes=processes,
        documents=documents,
        resident=resident,
        quiet=quiet,
        clock=clock,
    )
    pool.start()
    try:
        yield Bench(pool, folder)
    finally:
        pids = pool.pids
        await pool.stop()
        assert not [pid for pid in pids if psutil.pid_exists(pid)]


async def started(file: Path, *, after: int | None = None) -> int:
    """Wait until a parse has written its process id to this file, and return it. `after` is the one before it."""

    async def other() -> int | None:
        pid = int(file.read_text()) if file.exists() else None
        return pid if pid != after else None

    pid = await eventually(other, what=f"a parse that writes {file.name}")
    assert pid is not None
    return pid
