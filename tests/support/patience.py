"""Waiting for something to become true, instead of sleeping and hoping."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(
    look: Callable[[], Awaitable[T]], *, within: float = 30.0, every: float = 0.02, what: str = ""
) -> T:
    """The first truthy answer of `look`; fails with the last answer if none comes in time."""
    deadline = asyncio.get_running_loop().time() + within
    while True:
        answer = await look()
        if answer:
            return answer
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"did not become true within {within} s: {what or look} (last answer: {answer!r})")
        await asyncio.sleep(every)
