"""The supervisor of several worker processes: it starts them, replaces those that die, and stops them together.

A replacement is told which worker it replaces, so that the dead worker's jobs go back at once, not when its lease ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import uuid
from collections.abc import Callable, Sequence

import structlog

from waybill.ids import new_id
from waybill_engine.worker.child_processes import start_child

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Supervisor:
    def __init__(
        self, program: str, processes: int, arguments_for: Callable[[str], Sequence[str]] = lambda _: ()
    ) -> None:
        """`arguments_for` are further arguments of the child with a name: `1` for the first."""
        self._program = program
        self._arguments_for = arguments_for
        self._count = processes
        self._children: set[asyncio.subprocess.Process] = set()
        self._stopping = asyncio.Event()
        self._failed = False

    def stop(self) -> None:
        self._stopping.set()
        for child in self._children:
            if child.returncode is None:
                child.send_signal(signal.SIGTERM)

    async def run(self) -> int:
        """Keep the processes running until `stop` is called. Returns the exit code of this process."""
        await asyncio.gather(*(self._keep_one(str(number)) for number in range(1, self._count + 1)))
        return 2 if self._failed else 0

    async def _keep_one(self, name: str) -> None:
        dead: uuid.UUID | None = None
        pause = 0.1
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            worker_id = new_id()
            started = loop.time()
            code = await self._live_one_life(name, worker_id, dead)
            if code == 2:  # a bad configuration does not get better with another try
                self._failed = True
                self.stop()
            if self._stopping.is_set():
                return
            dead = worker_id
            pause = 0.1 if loop.time() - started > 30 else min(pause * 2, 10.0)
            log.warning("worker_process_died", code=code, again_in=pause)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def _live_one_life(self, name: str, worker_id: uuid.UUID, dead: uuid.UUID | None) -> int:
        replaces = [] if dead is None else ["--replaces", str(dead)]
        child = await start_child(self._program, worker_id, *replaces, *self._arguments_for(name))
        self._children.add(child)
        if self._stopping.is_set():
            child.send_signal(signal.SIGTERM)
        code = await child.wait()
        self._children.discard(child)
        return code
