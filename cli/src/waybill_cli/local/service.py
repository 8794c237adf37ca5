"""One supervised service: start its process, pass its output on, learn that it is ready, stop it."""

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

from waybill_cli.local.screen import Screen
from waybill_cli.local.tether import tethered


@dataclass(frozen=True, slots=True)
class Service:
    """A Python module that runs as a process of its own."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()


class ServiceProcess:
    """A running process of a service. It leads its own process group, so Ctrl-C does not reach it."""

    def __init__(self, service: Service, process: asyncio.subprocess.Process, output: int, screen: Screen) -> None:
        self.service = service
        self._process = process
        self._output = output
        self._screen = screen

    @classmethod
    async def start(cls, service: Service, environment: Mapping[str, str], screen: Screen) -> ServiceProcess:
        # We make the pipe ourselves: asyncio waits until its own pipe is closed before it reports that a process has
        # ended, and a child of the service may keep the pipe open.
        output, theirs = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                # If we die it gets SIGKILL, not SIGTERM: the next `waybill up` may follow at once and needs the port.
                # Nothing is lost, since the engine survives a killed worker.
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
        return cls(service, process, output, screen)

    async def finished(self) -> int:
        """Pass every line on until the process has ended. Returns its exit code, negative for a signal."""
        lines = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(self._output, "rb", buffering=0)
        )
        pump = asyncio.create_task(self._pump(lines))
        try:
            code = await self._process.wait()
            # Its own children may still be writing. We give them one second.
            await asyncio.wait([pump], timeout=1)
            return code
        finally:
            pump.cancel()
            transport.close()

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the service, which stops its own children."""
        if self._process.returncode is None:
            self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL to the service and its children."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _pump(self, output: asyncio.StreamReader) -> None:
        rest = b""
        # Not readline(): it gives up on lines longer than its buffer.
        while chunk := await output.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._screen.line(self.service.name, line.decode(errors="replace").rstrip())
        if rest:
            self._screen.line(self.service.name, rest.decode(errors="replace").rstrip())


class ReadyListener(asyncio.DatagramProtocol):
    """Receives the `READY=1` of one service (see `waybill.readiness`)."""

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
