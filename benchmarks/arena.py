"""Where it happens: one Postgres, a fresh database for every round, and processes that end when we do."""

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
    "max_wal_size": "4GB",  # no checkpoint in the middle of a round; each begins with one
    "max_connections": "300",
    "log_line_prefix": "%m [%p] %d ",
}

_PATIENCE = 15.0
"""Seconds a process gets to stop when it is asked to."""


class ContestantFailed(Exception):
    """A contestant's process ended, or did not finish in time; the message has its last words."""


@dataclass
class Arena:
    server: EmbeddedPostgres
    home: Path
    _prepared: set[str] = field(default_factory=set)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @contextlib.asynccontextmanager
    async def database(self, contestant: Contestant) -> AsyncIterator[str]:
        """The address of a fresh database with the contestant's tables in it."""
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
        """Run a verb of the contestant's program to its end."""
        async with self._process(contestant, url, (*contestant.program, *verb)) as process:
            if await process.wait() != 0:
                raise ContestantFailed(self._last_words(contestant))

    @contextlib.asynccontextmanager
    async def worker(
        self, contestant: Contestant, url: str, settings: Settings | None = None, *, port: int = 0
    ) -> AsyncIterator[Worker]:
        """One worker, until the block ends."""
        more = {"BENCH_SETTINGS": json.dumps(settings or {}), "BENCH_PORT": str(port)}
        async with self._process(contestant, url, contestant.worker, more) as process:
            yield Worker(process, lambda: self._last_words(contestant))

    @contextlib.asynccontextmanager
    async def feeder(self, contestant: Contestant, url: str) -> AsyncIterator[Feeder]:
        """A process that enqueues one job at a time."""
        async with self._process(contestant, url, (*contestant.program, "feed"), talking=True) as process:
            yield Feeder(process, lambda: self._last_words(contestant))

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
        # Nothing of the caller's environment but the path: whoever runs this may have settings of their own.
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": str(ROOT),
            "BENCH_DATABASE_URL": url,
            "WAYBILL_DATABASE_URL": url,
            "WAYBILL_HOME": str(self.home),
            **contestant.environment,
            **(more or {}),
        }
        with self._words(contestant).open("ab") as words:
            process = await asyncio.create_subprocess_exec(
                *tethered(command, on_parent_death=signal.SIGKILL),
                cwd=self.home,
                env=environment,
                stdin=PIPE if talking else asyncio.subprocess.DEVNULL,
                stdout=PIPE if talking else words,
                stderr=words,
                start_new_session=True,  # a terminal's Ctrl-C reaches us, and we stop it
            )
        try:
            yield process
        finally:
            await stop(process)

    def _words(self, contestant: Contestant) -> Path:
        return self.home / f"{contestant.slug}.log"

    def _last_words(self, contestant: Contestant) -> str:
        said = self._words(contestant).read_text(errors="replace").strip()
        return f"{contestant.name} failed. It said:\n{said[-3000:] or 'nothing'}"


@dataclass(frozen=True)
class Worker:
    process: Process
    last_words: Callable[[], str]

    @property
    def pid(self) -> int:
        return self.process.pid

    async def until(self, connection: Connection, question: str, *arguments: object, timeout: float = 600.0) -> None:
        """Wait until SQL answers yes, as long as the worker lives."""
        async with asyncio.timeout(timeout):
            while not await connection.fetchval(question, *arguments):
                if self.process.returncode is not None:
                    raise ContestantFailed(self.last_words())
                await asyncio.sleep(0.002)


@dataclass(frozen=True)
class Feeder:
    process: Process
    last_words: Callable[[], str]

    async def enqueue(self, sample: int) -> int:
        """Enqueue one job; the answer is the monotonic clock, in nanoseconds, when its commit had returned."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{sample}\n".encode())
        answer = await self.process.stdout.readline()
        if not answer:
            raise ContestantFailed(self.last_words())
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
