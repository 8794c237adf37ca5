"""One parser, seen from the service: start it, give it a document, end it, and find out why it died."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import structlog

from waybill.telemetry.metrics import GATEWAY_PARSER_DEATHS
from waybill_gateway.pool.cause_of_death import cause_of_death, killed_from_outside
from waybill_gateway.pool.faults import (
    Broken,
    Crashed,
    Killed,
    OutOfSpace,
    PoolError,
    TookTooLong,
    TooMuchMemory,
    Unavailable,
)
from waybill_gateway.pool.os_process import OsProcess, ProcessEnd
from waybill_gateway.sandbox import channel
from waybill_gateway.sandbox.limits import ProcessLimits, Usage

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_BURIAL = 5.0
"""Seconds until a dead parser must be reaped."""
_PLACE = re.compile(r'Fatal Python error: |Current thread 0x|Thread 0x|  File "')

# The only variables that a parser gets; others contain addresses and passwords.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "PYTHONHOME", "WAYBILL_SUPERVISED")


_CAUSES: dict[type[PoolError], str] = {
    TookTooLong: "took_too_long",
    TooMuchMemory: "too_much_memory",
    Crashed: "crashed",
    Killed: "killed",
}


class NeverBegan(Exception):
    """The parser was dead before it received the document, so the document is not to blame."""


class CannotStart(Exception):
    """The parser never became ready. The message contains its last output."""

    def __init__(self, reason: str, *, killed: bool = False) -> None:
        super().__init__(reason)
        self.killed = killed
        """Whether somebody else killed it."""


@dataclass(frozen=True, slots=True)
class Blueprint:
    """How to start a parser of the pool."""

    function: str
    """`module:function`, see `waybill_gateway.sandbox.__main__`."""
    limits: ProcessLimits
    options: Mapping[str, Any] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    start_within: float = 30.0
    """Seconds."""


class Parser:
    def __init__(
        self, memory: int, process: OsProcess, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._memory = memory
        self._process = process
        self._reader = reader
        self._writer = writer
        self._killed = False
        self.landlock = 0
        """The version of Landlock that confines it; 0 for none."""
        self.documents = 0
        self.resident = 0
        """Bytes of memory after its last document."""
        self.worn = False
        """Whether it must get no more documents."""

    @classmethod
    async def start(cls, blueprint: Blueprint) -> Parser:
        """Start a parser that is ready for its first document."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = OsProcess(
                    _command(blueprint, theirs.fileno()), keep=theirs.fileno(), environment=_environment()
                )
            except OSError as error:
                ours.close()
                raise CannotStart(str(error)) from error
        try:
            reader, writer = await asyncio.open_connection(sock=ours, limit=channel.LONGEST)
        except BaseException:
            ours.close()
            process.kill()
            raise
        parser = cls(blueprint.limits.memory, process, reader, writer)
        try:
            await parser._begin(blueprint.start_within)
        except BaseException:
            parser.let_go()
            raise
        return parser

    async def _begin(self, within: float) -> None:
        """Wait until it says that it is ready."""
        try:
            async with asyncio.timeout(within):
                self.landlock = int((await self._receive())["landlock"])
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            ended = await self._end_by_itself()
            end = await self.close()
            killed = ended is not None and killed_from_outside(ended)
            raise CannotStart(f"exit code {end.code}: {end.last_words}", killed=killed) from error
        except (TimeoutError, KeyError, ValueError, OSError) as error:
            end = await self.close()
            raise CannotStart(f"it did not say that it is ready: {end.last_words}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._killed and self._process.end is None and not self._reader.at_eof()

    async def ask(self, call: Mapping[str, Any], result: Path, *, seconds: float) -> dict[str, Any]:
        """Have it parse one document. Returns its note about the answer, which it wrote to `result`.

        If anything else happens, including cancellation, the parser is killed, because its state is unknown.
        """
        before: Usage | None = None
        try:
            async with asyncio.timeout(seconds):
                # The message fits into the socket's buffer, so there is no need to drain.
                self._writer.write(channel.pack({"call": call, "result": str(result), "seconds": seconds}))
                begun = await self._receive()
                before = Usage(int(begun["peak"]), float(begun["cpu"]))
                self.documents += 1
                reply = await self._receive()
                self.resident = int(reply["resident"])
                outcome = reply["outcome"]
        except TimeoutError:
            stopped = self._process.stopped
            self.kill()
            if before is None:
                raise NeverBegan from None
            raise _counted(Killed() if stopped else TookTooLong()) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            end = await self._end_by_itself()
            if before is None:
                raise NeverBegan from None
            raise self._cause_of_death(end, before, seconds) from None
        except (ValueError, KeyError, TypeError) as error:
            self.kill()  # it no longer speaks our protocol
            raise _counted(Crashed()) from error
        except BaseException:
            self.kill()
            raise
        self._process.forget_words()
        if outcome == "done":
            return dict(reply["note"])
        if outcome == "memory":
            self.worn = True  # its heap is fragmented now
            raise _counted(TooMuchMemory())
        if reply.get("errno") in (errno.ENOSPC, errno.EDQUOT):
            raise OutOfSpace
        raise Broken(str(reply.get("traceback")))

    def kill(self) -> None:
        """Send SIGKILL to it and to everything it has started."""
        if self._process.end is None:
            self._killed = True
            self._process.kill()

    async def ended(self) -> ProcessEnd:
        """Wait until it has ended."""
        return await self._process.ended()

    async def buried(self) -> None:
        """Wait until it has ended, so that it cannot write any more, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BURIAL):
                await self._process.ended()

    def let_go(self) -> None:
        """Kill it and close its channel, without waiting for anything."""
        self.kill()
        self._writer.close()

    async def close(self) -> ProcessEnd:
        """Kill it and release its resources."""
        self.let_go()  # before we wait for anything, so that a cancellation leaks no socket
        end = await self._process.ended()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        return end

    async def _receive(self) -> dict[str, Any]:
        head = await self._reader.readexactly(channel.LENGTH.size)
        return channel.unpack(await self._reader.readexactly(channel.length_of(head)))

    async def _end_by_itself(self) -> ProcessEnd | None:
        """How it ended after it has closed its channel. None if it runs on, and now we kill it."""
        try:
            async with asyncio.timeout(_BURIAL):
                return await self._process.ended()
        except TimeoutError:
            self.kill()
            return None
        except BaseException:
            self.kill()
            raise

    def _cause_of_death(self, end: ProcessEnd | None, before: Usage, seconds: float) -> PoolError:
        if end is None:
            return _counted(Crashed())
        if self._killed:
            return Unavailable("the parsing processes are being stopped")
        cause = cause_of_death(end, before=before, memory=self._memory, seconds=seconds)
        log.warning(
            "parser_died",
            pid=self.pid,
            cause=type(cause).__name__,
            code=end.code,
            peak=end.usage.peak,
            last_words=_places(end.last_words),
        )
        return _counted(cause)


def _counted(cause: PoolError) -> PoolError:
    GATEWAY_PARSER_DEATHS.labels(_CAUSES[type(cause)]).inc()
    return cause


def _places(last_words: str) -> str:
    """The fault handler's lines, which name places in the code. A library may have printed a part of the document."""
    return "\n".join(line for line in last_words.splitlines() if _PLACE.match(line))


def _command(blueprint: Blueprint, channel: int) -> list[str]:
    order = {
        "parent": os.getpid(),
        "channel": channel,
        "function": blueprint.function,
        "options": dict(blueprint.options),
        "limits": asdict(blueprint.limits),
        "readable": [str(path) for path in blueprint.readable],
        "writable": [str(path) for path in blueprint.writable],
    }
    # The fault handler prints where a crash happened, for the log.
    return [sys.executable, "-P", "-X", "faulthandler", "-m", "waybill_gateway.sandbox", json.dumps(order)]


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
