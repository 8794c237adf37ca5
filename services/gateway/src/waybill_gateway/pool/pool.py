"""The pool: keeps its parsers running, gives each one document at a time, and replaces worn and dead ones.

A document whose parser dies by its own limits is at fault at once. Any other death is repeated first, and only a crash
that repeats in a fresh parser is the document's fault.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from waybill.telemetry import spans
from waybill_gateway.pool.faults import Crashed, Killed, PoolError, TookTooLong, Unavailable
from waybill_gateway.pool.oom_kills import OomKills
from waybill_gateway.pool.parse_spans import describe_parse
from waybill_gateway.pool.parser import Blueprint, CannotStart, NeverBegan, Parser
from waybill_gateway.pool.waiting_line import Need, WaitingLine

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
_LONGEST_PAUSE_AFTER_KILL = 1.0
"""Seconds between two starts. A parser that was killed while it started says nothing about the next one."""
_QUIET = 10.0
"""Seconds for which a document may hold up all others in order to run alone. Most documents take less than one."""


class Pool:
    """Replaces a parser after `documents`, or when it holds more than `resident` bytes after a document."""

    def __init__(
        self,
        blueprint: Blueprint,
        *,
        processes: int,
        documents: int,
        resident: int,
        quiet: float = _QUIET,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._blueprint = blueprint
        self._processes = processes
        self._documents = documents
        self._resident = resident
        self._clock = clock
        self._line = WaitingLine(processes, quiet=quiet)
        self._oom_kills = OomKills()
        self._parsers: set[Parser] = set()
        self._keepers: list[asyncio.Task[None]] = []
        self._cannot_start = False
        self._landlock: int | None = None

    def start(self) -> None:
        """Begin to start the parsers. `ready` tells when the first one is."""
        self._keepers = [asyncio.create_task(self._keep()) for _ in range(self._processes)]

    async def stop(self) -> None:
        """Kill all parsers at once. A call that still runs raises Unavailable."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    @property
    def ready(self) -> bool:
        """Whether any parser is alive, busy or not."""
        return any(parser.alive for parser in self._parsers)

    @property
    def use(self) -> dict[tuple[str, ...], float]:
        """How many parsers work, wait for a document, and are missing because they are being started."""
        alive, busy = len(self.pids), self._line.lent
        return {("busy",): busy, ("idle",): max(alive - busy, 0), ("missing",): max(self._processes - alive, 0)}

    @property
    def waiting(self) -> int:
        """How many documents wait for a parser."""
        return self._line.waiting

    @property
    def pids(self) -> set[int]:
        return {parser.pid for parser in list(self._parsers) if parser.alive}

    async def run(
        self, call: Mapping[str, Any], result: Path, *, seconds: float, wait: float
    ) -> tuple[dict[str, Any], float]:
        """Parse one document. Returns the parser's note about its answer, and how many seconds the document waited.

        It may wait for a parser for up to `wait` seconds, and be parsed for up to `seconds`. If its parser dies, it is
        repeated within the time that is left of both; the lost parse then counts as waiting.
        """
        began, asked = self._clock(), time.time_ns()
        deadline = began + wait + seconds
        need, first = Need.ANY, True
        deaths: set[type[PoolError]] = set()
        while True:
            async with self._lend(need, wait=min(wait, deadline - self._clock())) as parser:
                waited = self._clock() - began
                allowed = seconds if first else min(seconds, deadline - self._clock())
                spans.past_span(
                    "wait for parser", begun=asked, ended=time.time_ns(), attributes={"waybill.need": need.value}
                )
                try:
                    with spans.span("parse", attributes={"waybill.parser.pid": parser.pid}) as span:
                        begun = time.time_ns()
                        note = await parser.ask(call, result, seconds=allowed)
                        describe_parse(span, note, begun)
                    return note, waited
                except NeverBegan:
                    log.info("parser_was_dead", pid=parser.pid)
                except TookTooLong:
                    if allowed < seconds:
                        raise Unavailable("there was too little time left to repeat the parse") from None
                    raise
                except (Crashed, Killed) as death:
                    if isinstance(death, Killed):
                        log.warning("parser_killed", pid=parser.pid, oom_killer=self._oom_kills.any_new())
                    if type(death) in deaths:
                        raise
                    deaths.add(type(death))
                    need = Need.ALONE if isinstance(death, Killed) else Need.FRESH
                    log.info("parse_repeated", need=need.value)
            first, asked = False, time.time_ns()
            _discard(result)

    @asynccontextmanager
    async def _lend(self, need: Need, *, wait: float) -> AsyncIterator[Parser]:
        """Lend a parser for one document. One that failed has ended when this returns."""
        if self._cannot_start and not self.ready:
            raise Unavailable("no parsing process can be started")
        async with self._line.lend(need, wait=wait) as parser:
            try:
                yield parser
            finally:
                if not parser.alive:
                    await parser.buried()
                if parser.documents >= self._documents or parser.resident > self._resident:
                    parser.worn = True
                if parser.worn:
                    parser.kill()  # its keeper starts another

    async def _keep(self) -> None:
        """Keep one parser running as long as the pool runs."""
        pause = _FIRST_PAUSE
        while True:
            try:
                parser = await Parser.start(self._blueprint)
            except CannotStart as error:
                self._cannot_start = True
                log.error("parser_cannot_start", reason=str(error), killed=error.killed, again_in=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_AFTER_KILL if error.killed else _LONGEST_PAUSE)
                continue
            pause, self._cannot_start = _FIRST_PAUSE, False
            self._parsers.add(parser)
            self._line.add(parser)
            log.debug("parser_started", pid=parser.pid)
            if parser.landlock != self._landlock:  # log it once, since all parsers have the same kernel
                self._landlock = parser.landlock
                log_confinement(parser.landlock)
            try:
                end = await parser.ended()
                log.debug(
                    "parser_ended", pid=parser.pid, code=end.code, peak=end.usage.peak, documents=parser.documents
                )
            finally:
                self._parsers.discard(parser)
                await parser.close()


def _discard(result: Path) -> None:
    """Remove what a dead parser may have written of its answer."""
    result.unlink(missing_ok=True)


def log_confinement(landlock: int, platform: str = sys.platform) -> None:
    """Log whether the kernel restricts which files parsers can reach; on Linux it should."""
    if landlock or platform != "linux":
        log.info("parsers_confined", landlock=landlock)
    else:
        reason = "the kernel has no Landlock or forbids it, so parsers can read whatever this user can"
        log.warning("parsers_not_confined", landlock=0, reason=reason)
