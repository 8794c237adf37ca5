"""One service under supervision: starting it, passing its lines on, hearing that it is ready, stopping it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from waybill_cli.local.console import Console
from waybill_cli.local.tether import tethered


@dataclass(frozen=True, slots=True)
class Service:
    """A Python module that runs as a process of its own."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()


class Run:
    """One life of a service's process. It leads a process group of its own, so Ctrl-C does not reach it."""

    def __init__(self, service: Service, process: asyncio.subprocess.Process, output: int, console: Console) -> None:
        self.service = service
        self._process = process
        self._output = output
        self._console = console

    @classmethod
    async def start(cls, service: Service, environment: Mapping[str, str], console: Console) -> Run:
        # A pipe of our own: asyncio waits for the end of its pipe before it admits that a process has ended,
        # and a child of the service may hold it open.
        output, theirs = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                # SIGKILL, not SIGTERM, if we die: the next `waybill up` may follow at once and needs the
                # port. Nothing is lost by it; surviving a killed worker is what the engine is for.
                *tethered([sys.executable, "-m", service.module, *service.arguments], on_parent_death=signal.SIGKILL),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        except BaseException:
            os.close(output)
            raise
        finally:
            os.close(theirs)
        return cls(service, process, output, console)

    async def finished(self) -> int:
        """Pass every line on until the process has ended; its exit code, negative for a signal."""
        lines = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(self._output, "rb", buffering=0)
        )
        pump = asyncio.create_task(self._pump(lines))
        try:
            code = await self._process.wait()
            # What its own children, if any are left, still say in a moment is enough.
            await asyncio.wait([pump], timeout=1)
            return code
        finally:
            pump.cancel()
            transport.close()

    def ask_to_stop(self) -> None:
        """SIGTERM to the service alone: how its own children end is its business."""
        if self._process.returncode is None:
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL to the service and its children."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _pump(self, output: asyncio.StreamReader) -> None:
        rest = b""
        # Not readline(): it gives up on lines longer than its buffer.
        while chunk := await output.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._console.line(self.service.name, line.decode(errors="replace").rstrip())
        if rest:
            self._console.line(self.service.name, rest.decode(errors="replace").rstrip())


class ReadyListener(asyncio.DatagramProtocol):
    """Hears the `READY=1` of one service (see `waybill.readiness`)."""

    def __init__(self, on_ready: Callable[[], None]) -> None:
        self._on_ready = on_ready

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
        if b"READY=1" in data.splitlines():
            self._on_ready()

    @classmethod
    async def listen(cls, path: Path, on_ready: Callable[[], None]) -> asyncio.DatagramTransport:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: cls(on_ready), local_addr=str(path), family=socket.AF_UNIX
        )
        return transport
