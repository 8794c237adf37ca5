"""The pool: keeps its processes alive, hands each one document at a time, replaces the worn and the dead."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from waybill_gateway.pool.faults import Unavailable
from waybill_gateway.pool.parser import Blueprint, CannotStart, Child, NeverBegan

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0


class Pool:
    """Each process is replaced after `documents`, or when it still holds more than `resident` bytes after one."""

    def __init__(self, blueprint: Blueprint, *, processes: int, documents: int, resident: int) -> None:
        self._blueprint = blueprint
        self._processes = processes
        self._documents = documents
        self._resident = resident
        self._idle: asyncio.Queue[Child] = asyncio.Queue()
        self._children: set[Child] = set()
        self._keepers: list[asyncio.Task[None]] = []
        self._cannot_start = False
        self._landlock: int | None = None

    def start(self) -> None:
        """Begin to start the processes; `ready` says when the first one is."""
        self._keepers = [asyncio.create_task(self._keep()) for _ in range(self._processes)]

    async def stop(self) -> None:
        """End every process at once; a call that still runs sees it crash."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    @property
    def ready(self) -> bool:
        """Whether there is a process that could take a document, now or when it is done with its own."""
        return any(child.alive for child in self._children)

    @property
    def pids(self) -> set[int]:
        return {child.pid for child in self._children if child.alive}

    async def run(
        self, call: Mapping[str, Any], result: Path, *, seconds: float, wait: float
    ) -> tuple[dict[str, Any], float]:
        """Parse one document: what the process says about its answer, and for how many seconds it had to wait.

        It may wait for a process as long as `wait`, and be parsed as long as `seconds`.
        """
        began = time.monotonic()
        while True:
            child = await self._take(wait)
            waited = time.monotonic() - began
            try:
                return await child.ask(call, result, seconds=seconds), waited
            except NeverBegan:
                log.info("parser_was_dead", pid=child.pid)
            finally:
                self._give_back(child)

    async def _take(self, wait: float) -> Child:
        try:
            async with asyncio.timeout(wait):
                while True:
                    if self._cannot_start and not self.ready:
                        raise Unavailable("no parsing process can be started")
                    child = await self._idle.get()
                    if child.alive:  # it may have died in its sleep
                        return child
        except TimeoutError:
            raise Unavailable("no parsing process was free in time") from None

    def _give_back(self, child: Child) -> None:
        if child.documents >= self._documents or child.resident > self._resident:
            child.worn = True
        if child.worn:
            child.kill()  # its keeper starts the next one
        elif child.alive:
            self._idle.put_nowait(child)

    async def _keep(self) -> None:
        """Keep one process there, for as long as the pool runs."""
        pause = _FIRST_PAUSE
        while True:
            try:
                child = await Child.start(self._blueprint)
            except CannotStart as error:
                self._cannot_start = True
                log.error("parser_cannot_start", reason=str(error), again_in=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            pause, self._cannot_start = _FIRST_PAUSE, False
            self._children.add(child)
            self._idle.put_nowait(child)
            log.debug("parser_started", pid=child.pid)
            if child.landlock != self._landlock:  # all have the same kernel: it is said once
                self._landlock = child.landlock
                say_confinement(child.landlock)
            try:
                end = await child.ended()
                log.debug("parser_ended", pid=child.pid, code=end.code, peak=end.peak, documents=child.documents)
            finally:
                self._children.discard(child)
                await child.close()


def say_confinement(landlock: int, platform: str = sys.platform) -> None:
    """Tell the log what keeps parsers to their files; on Linux it should be the kernel."""
    if landlock or platform != "linux":
        log.info("parsers_confined", landlock=landlock)
    else:
        reason = "the kernel has no Landlock, or forbids it: parsers can read whatever this user can"
        log.warning("parsers_not_confined", landlock=0, reason=reason)
