"""The embedded Postgres server: start, stop, restart. `waybill up` and the tests both use it.

It listens on loopback TCP only, with a generated password. There is no Unix socket, so the home's path may be long. It
runs in its own session, so that Ctrl-C in a terminal does not reach it; we stop it last.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from waybill.files.private import open_private
from waybill_cli.local.lock import LockedError, take_lock
from waybill_cli.local.postgres.account import Account, account_for
from waybill_cli.local.postgres.binaries import bundled_binaries, within_reach
from waybill_cli.local.postgres.cluster import USER, ensure_cluster, server_environment
from waybill_cli.local.postgres.errors import PostgresError, PostgresInUseError
from waybill_cli.local.postgres.leftovers import clear_leftovers, clearing
from waybill_cli.local.postgres.places import data_place
from waybill_cli.local.postgres.ports import free_port
from waybill_cli.local.postgres.steps import take
from waybill_cli.local.tether import tethered

_START_TIMEOUT = 120.0  # a crash recovery can take long
# A clean shutdown writes everything to disk. A server that cannot do that in time recovers at its next start.
_STOP_TIMEOUTS = {signal.SIGINT: 15.0, signal.SIGQUIT: 5.0, signal.SIGKILL: 30.0}
_LOG_LIMIT = 10_000_000

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # It uses the data directory, because /dev/shm is often tiny in containers and keeps what a killed server left.
    "dynamic_shared_memory_type": "mmap",
}
# For throw-away data. `synchronous_commit` stays on, because a crash of the server alone must never lose anything.
_THROWAWAY = {"fsync": "off", "full_page_writes": "off"}


class EmbeddedPostgres:
    """One Postgres server with its data under `home`. There can be only one per home.

    `binaries` is a folder of Postgres programs (default: the embedded `version`). `settings` are server settings that
    override the data directory's `postgresql.conf`. The port is chosen at the first start and kept, so that clients can
    reconnect after a restart.
    """

    def __init__(
        self,
        home: Path,
        *,
        version: int = 18,
        binaries: Path | None = None,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        self.home = home.absolute()
        self.port = port
        self._binaries = binaries or bundled_binaries(version)
        self._settings = {**_SETTINGS, **(settings or {})}
        self._folder = self.home / "postgres"
        self._data: Path | None = None  # while its lock is ours
        self._lock: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextlib.contextmanager
    def temporary(
        cls,
        *,
        version: int = 18,
        binaries: Path | None = None,
        settings: Mapping[str, str] | None = None,
        below: Path | None = None,
    ) -> Iterator[Self]:
        """A running server with an empty database that is deleted afterwards. Its home is created in `below`."""
        with tempfile.TemporaryDirectory(prefix="waybill-", dir=below, ignore_cleanup_errors=True) as folder:
            home = Path(folder)
            if os.geteuid() == 0:
                home.chmod(0o711)  # the server's user may pass, and nobody may list it
            server = cls(home, version=version, binaries=binaries, settings={**_THROWAWAY, **(settings or {})})
            try:
                server.start()
                yield server
            finally:
                server.destroy()

    @property
    def running(self) -> bool:
        """Whether the server process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The server process (the "postmaster")."""
        if self._process is None:
            raise PostgresError("The embedded Postgres is not running; call start() first.")
        return self._process.pid

    @property
    def data(self) -> Path:
        """The data directory. It is in the home, unless we are root and the server's user cannot enter the home."""
        return data_place(self.home).resolve() / "data"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._folder / "server.log"

    @property
    def url(self) -> str:
        """The URL of the maintenance database, `postgres`."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The URL of a database on this server, including the password."""
        if self.port is None:
            raise PostgresError("The embedded Postgres has no address before its first start().")
        return f"postgresql://{USER}:{self._password()}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and return when it is ready. First it removes what a killed predecessor left."""
        take(self.starting())

    def starting(self) -> Generator[None, None, None]:
        """The same in steps (see `steps`). Whoever closes it before the last one stops what was started."""
        if self.running:
            raise PostgresError("The embedded Postgres is already running.")
        self._process = None
        if self._data is not None:  # it died by itself: we still hold its lock and must end its last processes
            yield from clearing(self._data)
        self._release_data()
        data = self._take_data()
        try:
            account = account_for(data)
            if account and not data.exists():
                # Only the server's own group may enter, not other processes of the user that runs `initdb`.
                os.chown(data.parent, 0, account.gid)
                data.parent.chmod(0o710)
            binaries = within_reach(self._binaries) if account else self._binaries
            yield from clearing(data)
            durable = self._settings.get("fsync") != "off"
            ensure_cluster(data, self._folder / "password", binaries, account, durable=durable)
            yield from self._launching(data, binaries, account)
        except BaseException as error:
            self.stop("immediate")
            if isinstance(error, OSError):
                raise PostgresError(
                    f"The embedded Postgres could not be started ({error}). Where it cannot run, set "
                    "WAYBILL_DATABASE_URL to a Postgres server."
                ) from error
            raise

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server. `fast` shuts down cleanly, `immediate` leaves recovery to the next start.

        If it is interrupted (by a second Ctrl-C), it can be called again.
        """
        steps = list(_STOP_TIMEOUTS.items())
        for step, patience in steps if mode == "fast" else steps[1:]:
            if self._process is not None:
                self._process.send_signal(step)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=patience)
                    self._process = None
        if self._data is not None:
            clear_leftovers(self._data)
        self._release_data()

    def destroy(self) -> None:
        """Stop the server and delete its data."""
        self.stop("immediate")
        if self._folder.exists():
            data = self._take_data()
            clear_leftovers(data)
            shutil.rmtree(data.parent, ignore_errors=True)
            shutil.rmtree(self._folder, ignore_errors=True)
            self._release_data()

    def create_database(self, name: str) -> str:
        """Create a database unless it exists, and return its URL."""
        run = subprocess.run(
            [
                str(self._binaries / "createdb"),
                "--host=127.0.0.1",
                f"--port={self.port}",
                f"--username={USER}",
                "--no-password",
                "--maintenance-db=postgres",
                name,
            ],
            env={**server_environment(), "PGPASSWORD": self._password()},
            capture_output=True,
            text=True,
        )
        if run.returncode != 0 and "already exists" not in run.stderr:
            raise PostgresError(f"The database {name!r} could not be created:\n{run.stderr.strip()}")
        return self.url_of(name)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _take_data(self) -> Path:
        """Lock the data directory and return its path."""
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            place = data_place(self.home)
            place.mkdir(mode=0o700, exist_ok=True)
            self._lock = take_lock(place / "lock")
        except LockedError as error:
            raise PostgresInUseError(
                f"The embedded Postgres of {self.home} is already running, started by process "
                f"{error.holder}. Stop that one, or choose another folder with WAYBILL_HOME."
            ) from None
        except OSError as error:
            raise PostgresError(
                f"{error.filename} cannot be used ({error.strerror}). Choose another folder with WAYBILL_HOME."
            ) from error
        self._data = place.resolve() / "data"
        return self._data

    def _release_data(self) -> None:
        self._data = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _password(self) -> str:
        return (self._folder / "password").read_text().strip()

    def _launching(self, data: Path, binaries: Path, account: Account | None) -> Iterator[None]:
        """Start the server on our port, or try free ports until one is not taken meanwhile."""
        for _attempt in range(10):
            port = self.port or free_port()
            log_start = self._spawn(data, binaries, account, port)
            deadline = time.monotonic() + _START_TIMEOUT
            while self.running and time.monotonic() < deadline:
                if self._is_up(data):
                    self.port = port
                    return
                yield
            said = self.log.read_bytes()[log_start:].decode(errors="replace").strip()
            if self.port is not None or "could not bind" not in said:
                raise PostgresError(f"Postgres did not start. Its log ({self.log}) says:\n{said[-2000:]}")
        raise PostgresError("Postgres found no free port on 127.0.0.1 in ten attempts; try again.")

    def _spawn(self, data: Path, binaries: Path, account: Account | None, port: int) -> int:
        settings = {**self._settings, "port": str(port)}
        command = [str(binaries / "postgres"), "-D", str(data)]
        command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))
        log = open_private(self.log, os.O_WRONLY | os.O_APPEND)
        log_start = os.fstat(log).st_size
        try:
            self._process = subprocess.Popen(
                tethered(command, on_parent_death=signal.SIGINT, account=account),
                cwd="/",
                env=server_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                umask=0o077,
                start_new_session=True,
            )
        finally:
            os.close(log)
        return log_start

    def _is_up(self, data: Path) -> bool:
        with contextlib.suppress(OSError, IndexError):
            lines = (data / "postmaster.pid").read_text().splitlines()
            return lines[0] == str(self.pid) and lines[7].strip() in ("ready", "standby")
        return False
