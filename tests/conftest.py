"""A real Postgres for every test that asks for one: a server per run, a fresh migrated database per test."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from hypothesis import settings

from support import processor_time, rewritten_tests, time_budget, trust_store
from support.child_processes import NO_METRICS
from support.clock import INSTALL, Clock
from support.log_lines import print_plainly
from support.server import Maintenance, postgres_server
from waybill.config import CommonSettings
from waybill.db import Database
from waybill.db.array_types import ArrayConnection
from waybill.db.database import Connection
from waybill.db.migrations import upgrade

Connect = Callable[[], Awaitable[Connection]]

OURS = ("WAYBILL_TEST_", "WAYBILL_E2E_", "WAYBILL_NO_SKIPS")
"""Variables that are about the tests themselves."""

NO_SHARED_DATA = "there is no ../shared/data beside the repository"

_PROCESSOR = pytest.StashKey[float]()
"""What this process and all below it had used when the last report was made."""

_numbers = itertools.count()

# A busy machine is slow, not wrong; what must be fast has a test of its own.
settings.register_profile("waybill", deadline=None)
settings.load_profile("waybill")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until everything is collected: nothing is garbage meanwhile, and there is much to look through
    # Whoever runs the tests may have settings of their own; the tests' processes must not inherit them.
    for name in list(os.environ):
        if name.startswith("WAYBILL_") and not name.startswith(OURS):
            del os.environ[name]
    os.environ.pop("DATABASE_URL", None)
    os.environ.update(NO_METRICS)
    print_plainly()
    trust_store.read_once()
    rewritten_tests.write_before_testers(config)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    time_budget.long_ones_first(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    if processor_time.WANTED:
        session.stash[_PROCESSOR] = processor_time.used()
    # Thousands of tests and their modules stay until the end. The garbage collector need not look at them again.
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with each report what was used since the one before."""
    report = yield
    if processor_time.WANTED:
        now = processor_time.used()
        time_budget.note_processor(report, now - item.session.stash[_PROCESSOR])
        item.session.stash[_PROCESSOR] = now
    return report


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """With WAYBILL_NO_SKIPS=1 a skipped test fails the run: CI must have what every test needs.

    Except for documents by others, which lie beside the repository where they lie at all.
    """
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("WAYBILL_NO_SKIPS") != "1" or reporter is None:
        return
    if any(NO_SHARED_DATA not in str(report.longrepr) for report in reporter.stats.get("skipped", ())):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what each folder took, in runs of more than a few tests."""
    reports = [
        each for group in terminalreporter.stats.values() for each in group if isinstance(each, pytest.TestReport)
    ]
    if len(reports) > 1000 or processor_time.WANTED:
        terminalreporter.section("seconds by folder")
        for line in time_budget.lines(reports):
            terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests reach this machine and nothing else."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else None
        if isinstance(host, str) and not host.startswith("127.") and host not in ("localhost", "::1"):
            raise AssertionError(f"a test tried to reach {host}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real material written by others, which lies beside the repository and is not part of it."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.exists():
        pytest.skip(NO_SHARED_DATA)
    return folder


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url


def on_server(server_url: str, database: str) -> str:
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{database}"))


@pytest.fixture(scope="session")
def maintenance(server_url: str) -> Iterator[Maintenance]:
    """Creates and drops the tests' databases."""
    with Maintenance(server_url) as connected:
        yield connected


@pytest.fixture(scope="session")
def template(server_url: str, maintenance: Maintenance) -> Iterator[str]:
    """A migrated, empty database that every test's own is copied from."""
    name = f"waybill_template_{os.getpid()}"

    async def prepare() -> None:
        url = on_server(server_url, name)
        await upgrade(url)
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(INSTALL)
        finally:
            await connection.close()

    maintenance.execute(f"CREATE DATABASE {name}")
    asyncio.run(prepare())
    yield name
    maintenance.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def a_database(maintenance: Maintenance, template: str) -> Iterator[str]:
    """The name of a fresh, migrated database."""
    name = f"waybill_test_{os.getpid()}_{next(_numbers)}"
    maintenance.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    # Settings of a database are not copied with it.
    maintenance.execute(f"ALTER DATABASE {name} SET search_path = test_clock, pg_catalog, public")
    yield name
    maintenance.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database_url(server_url: str, template: str, maintenance: Maintenance) -> Iterator[str]:
    """A fresh, migrated database."""
    with a_database(maintenance, template) as name:
        yield on_server(server_url, name)


@pytest.fixture
def empty_database_url(server_url: str, maintenance: Maintenance) -> Iterator[str]:
    """A database with nothing in it."""
    name = f"waybill_test_{os.getpid()}_{next(_numbers)}"
    maintenance.execute(f"CREATE DATABASE {name}")
    yield on_server(server_url, name)
    maintenance.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def clock(database_url: str) -> Clock:
    return Clock(database_url)


@pytest.fixture
async def connect(database_url: str) -> AsyncIterator[Connect]:
    """Opens connections to the test's database; they are closed afterwards."""
    opened: list[Connection] = []

    async def open_one() -> Connection:
        opened.append(await asyncpg.connect(database_url, connection_class=ArrayConnection))
        return opened[-1]

    yield open_one
    for connection in opened:
        await connection.close()


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    settings = CommonSettings.model_validate({"database_url": database_url})
    database = await Database.connect(settings, name="test")
    yield database
    await database.close()
