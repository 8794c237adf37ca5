"""The slow looks at everything, for what nobody announced: one after the other, and together.

A statement that finds nothing costs Postgres next to nothing. Waking one of its processes up for it does: a sleeping
one has lost its caches. So the looks of all parts happen at the same time, and in turn: the pool lends the connection
that came back last, and one process answers them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Never


@dataclass(slots=True)
class _Look:
    look: Callable[[], Awaitable[None]]
    interval: float
    due_at: float = 0.0


class Rounds:
    def __init__(self) -> None:
        self._looks: list[_Look] = []

    def every(self, interval: float, look: Callable[[], Awaitable[None]]) -> None:
        """Have it called now and then. It must not take long: the others wait for it."""
        self._looks.append(_Look(look, interval))

    async def run(self) -> Never:
        """For ever: go round."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            for one in self._looks:
                if one.due_at <= began:
                    one.due_at = began + one.interval
                    await one.look()
            await asyncio.sleep(max(min(one.due_at for one in self._looks) - loop.time(), 0.0))
