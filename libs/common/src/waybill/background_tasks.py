"""Tasks that run for ever beside something else, until that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Have the work done while the block runs."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        await end(task)


async def end(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait until it has ended, however it does."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
