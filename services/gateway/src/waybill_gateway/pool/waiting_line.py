"""Decides which document gets the next free parser.

Documents are served in order. One whose parser has died is repeated before all others, in a fresh parser. If its parser
was killed from outside, it also runs alone: the line lets the others finish, starts nothing beside it, and goes on
afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum

from waybill_gateway.pool.faults import Unavailable
from waybill_gateway.pool.parser import Parser


class Need(Enum):
    """What a document needs of its parser."""

    ANY = "any"
    FRESH = "fresh"
    """It must have had no other document, whose traces could be what crashed it."""
    ALONE = "alone"
    """The same, and no other document may be parsed at the same time, because they share the machine's memory."""


@dataclass(eq=False, slots=True)
class _Waiter:
    need: Need
    parser: asyncio.Future[Parser] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class WaitingLine:
    """Hands out the idle ones of `size` parsers. Whoever must be alone waits for that for up to `quiet` seconds."""

    def __init__(self, size: int, *, quiet: float) -> None:
        self._size = size
        self._quiet = quiet
        self._idle: list[Parser] = []
        self._lent: set[Parser] = set()
        self._alone: Parser | None = None
        self._waiting: list[_Waiter] = []

    @property
    def waiting(self) -> int:
        """How many documents wait."""
        return len(self._waiting)

    @property
    def lent(self) -> int:
        """How many parsers work."""
        return len(self._lent)

    def add(self, parser: Parser) -> None:
        """Take in a parser that has just started."""
        self._idle.append(parser)
        self._serve()

    @asynccontextmanager
    async def lend(self, need: Need, *, wait: float) -> AsyncIterator[Parser]:
        """Lend a parser for one document. Raises Unavailable if there is none within `wait` seconds."""
        parser = await self._take(need, wait)
        try:
            yield parser
        finally:
            self._give_back(parser)

    async def _take(self, need: Need, wait: float) -> Parser:
        if wait <= 0:
            raise Unavailable("there was no time left for another parse")
        waiter = _Waiter(need)
        self._join(waiter)
        patience = asyncio.get_running_loop().call_later(self._quiet, self._give_up_quiet, waiter)
        try:
            async with asyncio.timeout(wait):
                return await waiter.parser
        except TimeoutError:
            self._leave(waiter)
            raise Unavailable("no parsing process was free in time") from None
        except BaseException:
            self._leave(waiter)
            raise
        finally:
            patience.cancel()

    def _join(self, waiter: _Waiter) -> None:
        repeated = sum(each.need is not Need.ANY for each in self._waiting)
        self._waiting.insert(len(self._waiting) if waiter.need is Need.ANY else repeated, waiter)
        self._serve()

    def _leave(self, waiter: _Waiter) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)
            self._serve()  # it may have been the one that the others waited for
        elif not waiter.parser.cancelled():
            self._give_back(waiter.parser.result())  # it got one at the same moment

    def _give_back(self, parser: Parser) -> None:
        self._lent.discard(parser)
        if self._alone is parser:
            self._alone = None
        self._idle.append(parser)
        self._serve()

    def _give_up_quiet(self, waiter: _Waiter) -> None:
        """Stop waiting for others that take long: nobody else would be served meanwhile."""
        if waiter.need is Need.ALONE:
            waiter.need = Need.FRESH
            self._serve()

    def _serve(self) -> None:
        """Give parsers to those who wait, in order."""
        self._idle = [parser for parser in self._idle if parser.alive]
        for waiter in list(self._waiting):
            if self._alone is not None:
                return
            parser = self._parser_for(waiter.need)
            if parser is not None:
                self._waiting.remove(waiter)
                if not waiter.parser.done():  # otherwise it has just been cancelled
                    self._idle.remove(parser)
                    self._lent.add(parser)
                    self._alone = parser if waiter.need is Need.ALONE else None
                    waiter.parser.set_result(parser)
            elif waiter.need is Need.ALONE:
                return  # the others finish, and nothing new starts

    def _parser_for(self, need: Need) -> Parser | None:
        if need is Need.ANY:
            return self._idle[0] if self._idle else None
        if need is Need.ALONE and self._lent:
            return None
        fresh = next((parser for parser in self._idle if not parser.documents), None)
        if fresh is None and self._idle and len(self._idle) + len(self._lent) >= self._size:
            self._idle.pop(0).kill()  # none is being started at the moment, so make room for a new one
        return fresh
