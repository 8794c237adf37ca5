"""The benchmark's environment: one Postgres server, a fresh database per round, and processes that end with us."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from benchmarks.contestants import ROOT, Contestant, Settings
from waybill.db.database import Connection
from waybill_cli.local.postgres import EmbeddedPostgres
from waybill_cli.local.tether import tethered

SERVER = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",  # so that no checkpoint happens within a round; each round begins with one
    "max_connections": "300",
    "log_line_prefix": "%m [%p] %d ",
}

_PATIENCE = 15.0
"""Seconds that a process has to stop after SIGTERM."""


class ContestantFailed(Exception):
    """A contestant's process ended or did not finish in time. The message has the end of its output."""


@dataclass
class Arena:
    server: EmbeddedPostgres
    home: Path
    _prepared: set[str] = field(default_factory=set)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @contextlib.asynccontextmanager
    async def database(self, contestant: Contestant) -> AsyncIterator[str]:
        """Create a database with the contestant's tables and yield its URL."""
        template = f"{contestant.slug}_template"
        if template not in self._prepared:
            await self.run(contestant, self.server.create_database(template), "prepare")
            self._prepared.add(template)
        name = f"{contestant.slug}_{next(self._numbers)}"
        await self._administer(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.server.url_of(name)
        finally:
            await self._administer(f"DROP DATABASE {name} WITH (FORCE)")

    async def run(self, contestant: Contestant, url: str, *verb: str) -> None:
        """Run a verb of the contestant's program and wait until it has ended."""
        async with self._process(contestant, url, (*contestant.program, *verb)) as process:
            if await process.wait() != 0:
                raise ContestantFailed(self._end_of_output(contestant))

    @contextlib.asynccontextmanager
    async def worker(
        self, contestant: Contestant, url: str, settings: Settings | None = None, *, port: int = 0
    ) -> AsyncIterator[Worker]:
        """Run one worker until the block ends."""
        more = {"BENCH_SETTINGS": json.dumps(settings or {}), "BENCH_PORT": str(port)}
        async with self._process(contestant, url, contestant.worker, more) as process:
            yield Worker(process, lambda: self._end_of_output(contestant))

    @contextlib.asynccontextmanager
    async def feeder(self, contestant: Contestant, url: str) -> AsyncIterator[Feeder]:
        """Run a process that enqueues one job at a time."""
        async with self._process(contestant, url, (*contestant.program, "feed"), talking=True) as process:
            yield Feeder(process, lambda: self._end_of_output(contestant))

    async def _administer(self, statement: str) -> None:
        connection: Connection = await asyncpg.connect(self.server.url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    @contextlib.asynccontextmanager
    async def _process(
        self,
        contestant: Contestant,
        url: str,
        command: tuple[str, ...],
        more: Mapping[str, str] | None = None,
        *,
        talking: bool = False,
    ) -> AsyncIterator[Process]:
        # Pass on nothing but the path: the person who runs this may have settings of their own.
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": str(ROOT),
            "BENCH_DATABASE_URL": url,
            "WAYBILL_DATABASE_URL": url,
            "WAYBILL_HOME": str(self.home),
            **contestant.environment,
            **(more or {}),
        }
        with self._output(contestant).open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *tethered(command, on_parent_death=signal.SIGKILL),
                cwd=self.home,
                env=environment,
                stdin=PIPE if talking else asyncio.subprocess.DEVNULL,
                stdout=PIPE if talking else output,
                stderr=output,
                start_new_session=True,  # Ctrl-C in a terminal reaches only us, and we stop it
            )
        try:
            yield process
        finally:
            await stop(process)

    def _output(self, contestant: Contestant) -> Path:
        return self.home / f"{contestant.slug}.log"

    def _end_of_output(self, contestant: Contestant) -> str:
        text = self._output(contestant).read_text(errors="replace").strip()
        return f"{contestant.name} failed. The end of its output:\n{text[-3000:] or '(none)'}"


@dataclass(frozen=True)
class Worker:
    process: Process
    end_of_output: Callable[[], str]

    @property
    def pid(self) -> int:
        return self.process.pid

    async def until(self, connection: Connection, question: str, *arguments: object, timeout: float = 600.0) -> None:
        """Wait until the query returns true, and fail if the worker ends before."""
        async with asyncio.timeout(timeout):
            while not await connection.fetchval(question, *arguments):
                if self.process.returncode is not None:
                    raise ContestantFailed(self.end_of_output())
                await asyncio.sleep(0.002)


@dataclass(frozen=True)
class Feeder:
    process: Process
    end_of_output: Callable[[], str]

    async def enqueue(self, sample: int) -> int:
        """Enqueue one job. Returns the monotonic clock, in nanoseconds, at the return of its commit."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{sample}\n".encode())
        answer = await self.process.stdout.readline()
        if not answer:
            raise ContestantFailed(self.end_of_output())
        return int(answer)


async def stop(process: Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await process.wait()
