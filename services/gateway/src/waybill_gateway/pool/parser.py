"""One parsing process as the service sees it: starting it, asking it, ending it, and finding out why it died."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import structlog

from waybill_gateway.pool.faults import Broken, Crashed, OutOfSpace, PoolError, TookTooLong, TooMuchMemory
from waybill_gateway.pool.os_process import End, Process
from waybill_gateway.sandbox import messages
from waybill_gateway.sandbox.limits import Limits

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_MUCH = 0.4
"""The share of its memory that a process must have used for its crash to be put down to that."""
_BURIAL = 5.0
"""Seconds until a killed process must be gone."""

# All that a parsing process may know of our environment: the rest holds addresses and passwords.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "PYTHONHOME", "WAYBILL_SUPERVISED")


class NeverBegan(Exception):
    """The process was dead before it saw the document, which is not to blame."""


class CannotStart(Exception):
    """The process did not get as far as being ready; the message says what it said last."""


@dataclass(frozen=True, slots=True)
class Blueprint:
    """What every process of a pool is made from."""

    function: str
    """`module:function`, see `waybill_gateway.sandbox.__main__`."""
    limits: Limits
    options: Mapping[str, Any] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    start_within: float = 30.0
    """Seconds."""


class Child:
    def __init__(
        self, memory: int, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._memory = memory
        self._process = process
        self._reader = reader
        self._writer = writer
        self._killed = False
        self._peak_at_start = 0
        self.landlock = 0
        """The version of Landlock that confines it; 0 for none."""
        self.documents = 0
        self.resident = 0
        """Bytes of memory after its last document."""
        self.worn = False
        """Whether it should get no more documents."""

    @classmethod
    async def start(cls, blueprint: Blueprint) -> Child:
        """A process that is ready for its first document."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = Process(
                    _command(blueprint, theirs.fileno()), keep=theirs.fileno(), environment=_environment()
                )
            except OSError as error:
                ours.close()
                raise CannotStart(str(error)) from error
        # Nothing is waited for in here: what is connected already only has to be wrapped.
        reader, writer = await asyncio.open_connection(sock=ours, limit=messages.LONGEST)
        child = cls(blueprint.limits.memory, process, reader, writer)
        try:
            async with asyncio.timeout(blueprint.start_within):
                hello = await child._receive()
                child._peak_at_start, child.landlock = int(hello["peak"]), int(hello["landlock"])
        except (TimeoutError, asyncio.IncompleteReadError, KeyError, ValueError, OSError) as error:
            end = await child.close()
            raise CannotStart(f"exit code {end.code}: {end.last_words}") from error
        except BaseException:
            await child.close()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._killed and self._process.end is None and not self._reader.at_eof()

    async def ask(self, call: Mapping[str, Any], result: Path, *, seconds: float) -> dict[str, Any]:
        """Have it parse one document; what it says about its answer, which lies in `result`.

        Whatever else happens, also being cancelled, costs the process its life: nobody knows what it is doing.
        """
        begun = False
        try:
            async with asyncio.timeout(seconds):
                # Goes into the socket's buffer: it is short, and the process waits for nothing else.
                self._writer.write(messages.pack({"call": call, "result": str(result), "seconds": seconds}))
                begun = (await self._receive())["outcome"] == "begun"
                self.documents += 1
                reply = await self._receive()
                self.resident = int(reply["resident"])
                outcome = reply["outcome"]
        except TimeoutError:
            self.kill()
            raise TookTooLong from None
        except (asyncio.IncompleteReadError, ConnectionError):
            cause = await self._cause_of_death()
            raise (cause if begun else NeverBegan()) from None
        except (ValueError, KeyError, TypeError) as error:
            self.kill()  # these are not our messages any more
            raise Crashed from error
        except BaseException:
            self.kill()
            raise
        self._process.forget_words()
        if outcome == "done":
            return dict(reply["note"])
        if outcome == "memory":
            self.worn = True  # what is left of its heap is in pieces
            raise TooMuchMemory
        if reply.get("errno") in (errno.ENOSPC, errno.EDQUOT):
            raise OutOfSpace
        raise Broken(str(reply.get("traceback")))

    def kill(self) -> None:
        """SIGKILL to it and to whatever it may have started."""
        self._killed = True
        self._process.kill()

    async def ended(self) -> End:
        """Wait for its end, however it comes."""
        return await self._process.ended()

    async def close(self) -> End:
        """End it and give back all that it held."""
        self.kill()
        self._writer.close()  # before anything is waited for: whoever calls us off leaves no socket behind
        end = await self._process.ended()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        return end

    async def _receive(self) -> dict[str, Any]:
        head = await self._reader.readexactly(messages.LENGTH.size)
        return messages.unpack(await self._reader.readexactly(messages.length_of(head)))

    async def _cause_of_death(self) -> PoolError:
        try:
            async with asyncio.timeout(_BURIAL):
                end = await self._process.ended()
        except TimeoutError:  # it closed its channel and lives on
            self.kill()
            return Crashed()
        log.warning("parser_died", pid=self.pid, code=end.code, peak=end.peak, last_words=end.last_words)
        if end.code == -signal.SIGXCPU:
            return TookTooLong()
        # Nobody but the kernel kills it without our knowing. A parser that gets no more memory mostly says nothing
        # and aborts; one that died small was not short of it.
        starved = end.peak > max(self._memory * _MUCH, self._peak_at_start)
        if starved or end.code == -signal.SIGKILL or "MemoryError" in end.last_words:
            return TooMuchMemory()
        return Crashed()


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
    # The fault handler writes down where a crash happened, for the log.
    return [sys.executable, "-P", "-X", "faulthandler", "-m", "waybill_gateway.sandbox", json.dumps(order)]


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
