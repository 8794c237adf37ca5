"""Starts the Postgres server that the tests use.

`WAYBILL_TEST_DATABASE_URL` names an existing server whose user may create databases. Otherwise `WAYBILL_TEST_POSTGRES`
chooses: `18` (the default) and `16` are embedded, `debian` is the one from Debian's packages, and `container` uses
testcontainers.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import asyncpg
import pytest

from waybill_cli.local.postgres import EmbeddedPostgres, debian_binaries

# Tests use many short-lived databases and many worker processes at once.
SETTINGS = {"max_connections": "400", "shared_buffers": "256MB"}

# The password is long and random. Thousands of hashes at each log-in would protect nothing, and a run logs in
# thousands of times.
_QUICK_LOG_IN = """
DO $$ BEGIN
    IF current_setting('server_version_num')::int >= 160000 THEN
        PERFORM set_config('scram_iterations', '1', true);
        EXECUTE format('ALTER ROLE CURRENT_USER PASSWORD %L', '{password}');
    END IF;
END $$
"""

_MEMORY = Path("/dev/shm")
_ENOUGH = 6 * 2**30


def _folder() -> Path | None:
    """The folder for temporary data: in memory if there is enough, which halves the cost of a database."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH else None


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yield the URL of the server's maintenance database."""
    if given := os.environ.get("WAYBILL_TEST_DATABASE_URL"):
        yield given
        return
    choice = os.environ.get("WAYBILL_TEST_POSTGRES", "18")
    if choice == "container":
        from testcontainers.community.postgres import PostgresContainer

        with PostgresContainer("postgres:18", driver=None) as container:
            yield container.get_connection_url()
    else:
        with embedded(choice) as server:
            with Maintenance(server.url) as connected:
                connected.execute(_QUICK_LOG_IN.format(password=urlsplit(server.url).password))
            yield server.url


class Maintenance:
    """A connection to the server that outlives a test, and so runs on a loop of its own.

    Most tests create a database and drop it; connecting anew each time would cost as much as both.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._connection = self._loop.run_until_complete(asyncpg.connect(self._url))
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._connection.close())
        self._loop.close()

    def execute(self, statement: str) -> None:
        self._loop.run_until_complete(self._connection.execute(statement))


@contextmanager
def embedded(choice: str | None = None) -> Iterator[EmbeddedPostgres]:
    """A separate server, for tests that stop and start it."""
    choice = choice or os.environ.get("WAYBILL_TEST_POSTGRES", "18")
    if choice not in ("18", "16", "debian"):
        pytest.exit(f"WAYBILL_TEST_POSTGRES is 18, 16, debian or container, not {choice!r}", returncode=2)
    if choice == "debian":
        with EmbeddedPostgres.temporary(binaries=debian_binaries(), settings=SETTINGS, below=_folder()) as server:
            yield server
    else:
        with EmbeddedPostgres.temporary(version=int(choice), settings=SETTINGS, below=_folder()) as server:
            yield server


@contextmanager
def frozen(server: EmbeddedPostgres) -> Iterator[None]:
    """Freeze all of the server's processes: connections stay open, and nothing answers."""
    stopped: list[int] = []
    try:
        family = [server.pid]
        for pid in family:  # the parent first, so that it starts no more children
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
            family += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
