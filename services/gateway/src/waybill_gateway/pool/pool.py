"""The pool: keeps its parsers running, gives each one document at a time, and replaces worn and dead ones."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from waybill_gateway.pool.faults import Unavailable
from waybill_gateway.pool.parser import Blueprint, CannotStart, NeverBegan, Parser

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0


class Pool:
    """Replaces a parser after `documents`, or when it holds more than `resident` bytes after a document."""

    def __init__(self, blueprint: Blueprint, *, processes: int, documents: int, resident: int) -> None:
        self._blueprint = blueprint
        self._processes = processes
        self._documents = documents
        self._resident = resident
        self._idle: asyncio.Queue[Parser] = asyncio.Queue()
        self._parsers: set[Parser] = set()
        self._keepers: list[asyncio.Task[None]] = []
        self._cannot_start = False
        self._landlock: int | None = None

    def start(self) -> None:
        """Begin to start the parsers. `ready` tells when the first one is."""
        self._keepers = [asyncio.create_task(self._keep()) for _ in range(self._processes)]

    async def stop(self) -> None:
        """Kill all parsers at once. A call that still runs fails as if its parser had crashed."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    @property
    def ready(self) -> bool:
        """Whether any parser is alive, busy or not."""
        return any(parser.alive for parser in self._parsers)

    @property
    def pids(self) -> set[int]:
        return {parser.pid for parser in self._parsers if parser.alive}

    async def run(
        self, call: Mapping[str, Any], result: Path, *, seconds: float, wait: float
    ) -> tuple[dict[str, Any], float]:
        """Parse one document. Returns the parser's note about its answer, and how many seconds the document waited.

        It may wait for a parser for up to `wait` seconds, and be parsed for up to `seconds`.
        """
        began = time.monotonic()
        while True:
            parser = await self._take(wait)
            waited = time.monotonic() - began
            try:
                return await parser.ask(call, result, seconds=seconds), waited
            except NeverBegan:
                log.info("parser_was_dead", pid=parser.pid)
            finally:
                self._give_back(parser)

    async def _take(self, wait: float) -> Parser:
        try:
            async with asyncio.timeout(wait):
                while True:
                    if self._cannot_start and not self.ready:
                        raise Unavailable("no parsing process can be started")
                    parser = await self._idle.get()
                    if parser.alive:  # it may have died while it was idle
                        return parser
        except TimeoutError:
            raise Unavailable("no parsing process was free in time") from None

    def _give_back(self, parser: Parser) -> None:
        if parser.documents >= self._documents or parser.resident > self._resident:
            parser.worn = True
        if parser.worn:
            parser.kill()  # its keeper starts another
        elif parser.alive:
            self._idle.put_nowait(parser)

    async def _keep(self) -> None:
        """Keep one parser running as long as the pool runs."""
        pause = _FIRST_PAUSE
        while True:
            try:
                parser = await Parser.start(self._blueprint)
            except CannotStart as error:
                self._cannot_start = True
                log.error("parser_cannot_start", reason=str(error), again_in=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            pause, self._cannot_start = _FIRST_PAUSE, False
            self._parsers.add(parser)
            self._idle.put_nowait(parser)
            log.debug("parser_started", pid=parser.pid)
            if parser.landlock != self._landlock:  # log it once, since all parsers have the same kernel
                self._landlock = parser.landlock
                log_confinement(parser.landlock)
            try:
                end = await parser.ended()
                log.debug("parser_ended", pid=parser.pid, code=end.code, peak=end.peak, documents=parser.documents)
            finally:
                self._parsers.discard(parser)
                await parser.close()


def log_confinement(landlock: int, platform: str = sys.platform) -> None:
    """Log whether the kernel restricts which files parsers can reach; on Linux it should."""
    if landlock or platform != "linux":
        log.info("parsers_confined", landlock=landlock)
    else:
        reason = "the kernel has no Landlock or forbids it, so parsers can read whatever this user can"
        log.warning("parsers_not_confined", landlock=0, reason=reason)
