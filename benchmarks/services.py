"""Runs services that answer HTTP, each in a process of its own that ends with us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import wire
from benchmarks.arena import ContestantFailed, stop
from benchmarks.contestants import ROOT
from waybill_cli.local.tether import tethered

_READY_WITHIN = 60.0


@dataclass(frozen=True)
class Service:
    port: int
    pid: int
    log: Path
    """Its standard output and error."""


@contextlib.asynccontextmanager
async def running(
    module: str, home: Path, port: int | None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Service]:
    """Run `python -m MODULE` until the block ends. With a port, wait until it answers that it is ready."""
    # Pass on nothing but the path: the person who runs this may have settings of their own.
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(ROOT),
        "WAYBILL_HOME": str(home),
        **(settings or {}),
    }
    said = _log(home, module)
    with said.open("ab") as words:
        process = await asyncio.create_subprocess_exec(
            *tethered((sys.executable, "-m", module), on_parent_death=signal.SIGKILL),
            cwd=home,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            start_new_session=True,  # Ctrl-C in a terminal reaches only us, and we stop it
        )
    try:
        async with asyncio.timeout(_READY_WITHIN):
            while port is not None and not await wire.is_ready(port):
                if process.returncode is not None:
                    raise ContestantFailed(f"{module} did not start. It said:\n{said.read_text()[-3000:]}")
                await asyncio.sleep(0.05)
        yield Service(port or 0, process.pid, said)
    finally:
        await stop(process)


def _log(home: Path, module: str) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    return home / f"{module}.log"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
