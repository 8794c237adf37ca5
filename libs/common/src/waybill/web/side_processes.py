"""Processes beside the API for work that takes the processor's time, so that the event loop never waits for it.

Threads would not do: they share the interpreter with the loop, which then answers everybody late. The processes are
forked from one that has imported what they need, so starting another one is cheap. That is why the process of a call
that nobody waits for any more is simply killed, and one that has grown is replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar, cast

import structlog

from waybill.errors import RateLimited
from waybill.messages import msg
from waybill.tracebacks import carry_frames

log: structlog.stdlib.BoundLogger = structlog.get_logger()

T = TypeVar("T")

_POLITE = 5
"""Niceness: requests that need only the API are answered first."""
_LARGEST = 192 * 2**20
"""Bytes that a process may keep in memory after a call; a larger one is replaced."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class WorkTookTooLong(RateLimited):
    """The work was given up, or its process died. Asking again may help."""

    status = 503


class WorkDied(WorkTookTooLong):
    """The process died of the work."""


class SideProcesses:
    """Runs functions in processes of their own, one call at a time in each.

    Whoever calls bounds how many run at once, and with that how many processes there are (`fair_places`).
    """

    def __init__(self, most: int, *, preload: Sequence[str]) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._preload = list(preload)
        self._idle: list[_SideProcess] = []
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="side-process")
        self._starting = threading.Lock()

    async def run(self, function: Callable[..., T], *arguments: object, within: float) -> T:
        """Call a function; what it takes and returns is pickled. If the caller is cancelled, the process is killed."""
        loop = asyncio.get_running_loop()
        process = self._idle.pop() if self._idle else _SideProcess()
        calling = loop.run_in_executor(self._threads, self._call, process, function, arguments)
        try:
            async with asyncio.timeout(within):
                failure, result, resident = await asyncio.shield(calling)
        except TimeoutError:
            await self._end(process, calling)
            log.warning("side_process_too_slow", work=function.__qualname__, seconds=within)
            raise WorkTookTooLong(msg("request.busy"), retry_after=5) from None
        except (EOFError, OSError):
            await self._end(process, calling)
            log.warning("side_process_died", work=function.__qualname__)
            raise WorkDied(msg("request.busy"), retry_after=1) from None
        except BaseException:
            await self._end(process, calling)
            raise
        if resident > _LARGEST:
            process.kill()
        else:
            self._idle.append(process)
        if failure is not None:
            raise failure
        return cast("T", result)

    def close(self) -> None:
        for process in self._idle:
            process.kill()
        self._idle.clear()
        self._threads.shutdown(wait=False)

    def _call(
        self, process: _SideProcess, function: Callable[..., object], arguments: tuple[object, ...]
    ) -> tuple[BaseException | None, object, int]:
        """Runs in a thread, which waits without the interpreter's lock."""
        connection = process.connection
        if connection is None:
            with self._starting:  # the server that forks is started with the first of them
                self._context.set_forkserver_preload(self._preload)
                connection = process.start(self._context)
        _send_call(connection, function, arguments)
        failure, result, resident = pickle.loads(connection.recv_bytes())  # noqa: S301 - written by our own process
        return failure, result, resident

    async def _end(self, process: _SideProcess, calling: asyncio.Future[Any]) -> None:
        """Kill a process in the midst of a call, and wait for the thread that talks to it."""
        process.kill()
        with contextlib.suppress(Exception):
            await asyncio.shield(calling)


def _send_call(connection: Connection, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    """Files are sent as they are. To pickle several megabytes takes the interpreter's lock for as many milliseconds."""
    files = [each for each in arguments if isinstance(each, bytes)]
    outside = [pickle.PickleBuffer(each) if isinstance(each, bytes) else each for each in arguments]
    call = pickle.dumps((function, outside), protocol=5, buffer_callback=lambda _: None)
    connection.send_bytes(pickle.dumps((call, len(files))))
    for file in files:
        connection.send_bytes(file)


class _SideProcess:
    def __init__(self) -> None:
        self.connection: Connection | None = None
        self._process: multiprocessing.process.BaseProcess | None = None
        self._lock = threading.Lock()
        self._killed = False

    def start(self, context: multiprocessing.context.ForkServerContext) -> Connection:
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True, name="side process")
        process.start()
        theirs.close()
        with self._lock:
            self.connection, self._process = ours, process
            killed = self._killed
        if killed:
            self.kill()
        return ours

    def kill(self) -> None:
        with self._lock:
            self._killed = True
            process = self._process
        if process is not None:
            process.kill()  # the process that forked it sees it off


# What follows runs in the side process.


def _serve(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the API, which ends us
    os.nice(_POLITE)
    gc.disable()  # a call makes many objects and few cycles; we collect between calls
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the API has ended, however it did
        while True:
            connection.send_bytes(_answer(*_received_call(connection)))
            gc.collect()


def _received_call(connection: Connection) -> tuple[bytes, list[bytes]]:
    call, files = pickle.loads(connection.recv_bytes())  # noqa: S301 - written by the API
    return call, [connection.recv_bytes() for _ in range(files)]


def _answer(call: bytes, files: list[bytes]) -> bytes:
    failure: BaseException | None = None
    result: object = None
    try:
        function, arguments = pickle.loads(call, buffers=files)  # noqa: S301 - written by the API
        result = function(*arguments)
    except Exception as error:  # noqa: BLE001 - it is raised again in the API
        carry_frames(error)
        failure = error
    return pickle.dumps((failure, result, _resident()))


def _resident() -> int:
    """Bytes of this process in memory, without files."""
    try:
        _, resident, files, *_ = map(int, Path("/proc/self/statm").read_text().split())
    except OSError:  # only Linux tells
        return 0
    return (resident - files) * _PAGE
