"""Waits for conditions instead of sleeping, so that tests on a busy machine take longer and still pass."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which a test gives up on something that takes milliseconds on an idle machine."""


async def eventually(
    look: Callable[[], Awaitable[T]], *, within: float = 30.0, every: float = 0.02, what: str = ""
) -> T:
    """Call `look` until it returns something truthy, and return that. Fails with the last answer after `within`."""
    deadline = asyncio.get_running_loop().time() + within
    while True:
        answer = await look()
        if answer:
            return answer
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"did not become true within {within} s: {what or look} (last answer: {answer!r})")
        await asyncio.sleep(every)


def wait_until(true: Callable[[], object], what: str, within: float = PATIENCE, every: float = 0.01) -> None:
    """The same for tests without an event loop."""
    deadline = time.monotonic() + within
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen within {within:g} s: {what}")
        time.sleep(every)


async def until(holds: Callable[[], bool], *, within: float = 30.0) -> None:
    """Wait until something holds that can be seen without asking anybody."""

    async def look() -> bool:
        return holds()

    await eventually(look, within=within)
