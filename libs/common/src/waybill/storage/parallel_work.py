"""Works on many stored objects, several at once: most of the time goes by in waiting for the storage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from waybill.errors import IoFailure


async def side_by_side(work: Callable[[], Coroutine[None, None, None]], number: int) -> None:
    """Do the same several times at once. A failure of the storage ends all of them, and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(number):
                group.create_task(work())
    except* IoFailure as failures:
        raise failures.exceptions[0] from None
