"""Which Postgres the tests use: the embedded one, a given one, a container, or another version.

`WAYBILL_TEST_DATABASE_URL` names a server (its user must be allowed to create databases);
`WAYBILL_TEST_POSTGRES` chooses otherwise: `18` (default) and `16` embedded, `debian` for the one installed
from Debian's packages, `container` for testcontainers.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from waybill_cli.local.postgres import EmbeddedPostgres, debian_binaries

# Many short-lived databases and many worker processes at once.
SETTINGS = {"max_connections": "400", "shared_buffers": "256MB", "autovacuum_naptime": "5s"}

_MEMORY = Path("/dev/shm")
_ENOUGH = 6 * 2**30


def _folder() -> Path | None:
    """Where data lies that is thrown away: in memory, if there is plenty, which halves what a database costs."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH else None


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a server's maintenance database."""
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
            yield server.url


@contextmanager
def embedded(choice: str | None = None) -> Iterator[EmbeddedPostgres]:
    """A server of one's own, for tests that stop and start it."""
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
    """All of the server's processes are stopped: what is connected stays so, and nobody answers."""
    stopped: list[int] = []
    try:
        family = [server.pid]
        for pid in family:  # the first one first, so that it has no more children
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
            family += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
