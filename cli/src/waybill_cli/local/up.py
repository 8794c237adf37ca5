"""`waybill up`: the whole product in the foreground, on this machine.

In order: the lock on the home folder, leftovers of a killed predecessor, ports, Postgres, migrations,
services; and all of it backwards at the end, however the end comes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from waybill import log
from waybill.config import DatabaseUrl
from waybill.console import local_address
from waybill.db import Database
from waybill.db.migrations import upgrade
from waybill.errors import WaybillError
from waybill.readiness import notify_ready
from waybill.security import keys
from waybill_cli.local.console import Console
from waybill_cli.local.lock import LockedError, take_lock
from waybill_cli.local.orphans import MARK, end_orphans
from waybill_cli.local.ports import PortError, check_port
from waybill_cli.local.postgres import EmbeddedPostgres, PostgresError
from waybill_cli.local.service import Service
from waybill_cli.local.settings import UpSettings
from waybill_cli.local.supervisor import Supervisor, stop_signals

SERVICES = (
    Service("worker", "waybill_worker"),
    Service("gateway", "waybill_gateway"),
    Service("janitor", "waybill_janitor", ("--every",)),
    Service("api", "waybill_api"),
)


class UpError(Exception):
    """Waybill cannot run here and now; the message says what to do about it."""


def run_everything(settings: UpSettings) -> int:
    """Run until Ctrl-C or SIGTERM, and return the exit code: 0 for such a stop."""
    console = Console(tuple(service.name for service in SERVICES))
    home = settings.home.resolve()
    if settings.log_format == "auto":  # everybody writes for the person in front of this terminal
        settings = settings.model_copy(update={"log_format": "console"})
    log.configure(settings, service="up")
    logging.getLogger("alembic").setLevel(logging.WARNING)  # that migrations ran well is no news here
    _interruptible()
    try:
        with _locked(home):
            end_orphans(home)
            check_port(settings.api_host, settings.api_port, "WAYBILL_API_PORT")
            check_port(settings.gateway_host, settings.gateway_port, "WAYBILL_GATEWAY_PORT")
            with _database(settings, home, console) as (url, upkeep):
                known = settings.model_copy(update={"database_url": url})
                try:
                    code = asyncio.run(_serve(known, home, upkeep, console))
                finally:
                    _interruptible()
                    end_orphans(home)
    except KeyboardInterrupt:  # while starting or stopping; the supervisor turns it into a return
        code = 0
    except (UpError, PortError, PostgresError) as error:
        console.bad(str(error))
        return 1
    console.say("Stopped.")
    return code


async def _serve(settings: UpSettings, home: Path, upkeep: Callable[[], None], console: Console) -> int:
    await _migrate(settings)
    first_key = await _first_admin_key(settings)
    if first_key is not None:  # at once, and nowhere else: whatever happens next, it has been seen
        console.good(f"Your admin key, shown this once: {first_key}")
        console.say("Sign in with it, or send it as 'Authorization: Bearer …'. More: waybill apikey --help")
    # The worker's own patience comes first; ours only ends what has lost its own.
    supervisor = Supervisor(
        SERVICES, _environment(settings, home, console), console, grace=settings.shutdown_grace + 10
    )

    def all_ready() -> None:
        console.good(f"Waybill is ready: http://{_bracketed(settings.api_host)}:{settings.api_port} (Ctrl-C stops it)")
        notify_ready()  # we may be a service ourselves

    return await supervisor.run(on_ready=all_ready, upkeep=upkeep)


def _environment(settings: UpSettings, home: Path, console: Console) -> dict[str, str]:
    """What the services see: our own environment, and what we know better than it."""
    return {
        **os.environ,
        "WAYBILL_DATABASE_URL": settings.database_url.url,
        "WAYBILL_GATEWAY_URL": f"http://{_bracketed(settings.gateway_host)}:{settings.gateway_port}",  # the one we run
        "WAYBILL_HOME": str(home),
        "WAYBILL_LOG_FORMAT": settings.log_format,
        "PYTHONUNBUFFERED": "1",
        **({"FORCE_COLOR": "1"} if console.coloured else {}),  # their lines go through a pipe to a terminal
        MARK: str(home),
    }


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def _migrate(settings: UpSettings) -> None:
    database = await Database.connect(settings, name="waybill up", schema=False)
    await database.close()
    try:
        await upgrade(settings.database_url.url)
    except WaybillError:
        raise
    except Exception as error:
        raise UpError(f"The database could not be migrated: {error}") from error


async def _first_admin_key(settings: UpSettings) -> str | None:
    """An admin key for whoever starts Waybill for the first time; None if there is one already."""
    database = await Database.connect(settings, name="waybill up")
    try:
        async with database.hot() as connection:
            made = await keys.create_first_admin(connection)
        return made.text if made is not None else None
    finally:
        await database.close()


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = take_lock(home / "up.lock")
    except LockedError as error:
        raise UpError(
            f"Waybill already runs with {home} (process {error.holder}). Stop that one first, or give this "
            "one a folder and ports of its own: WAYBILL_HOME, WAYBILL_API_PORT, WAYBILL_GATEWAY_PORT."
        ) from None
    except OSError as error:
        raise UpError(f"{home} cannot be used ({error.strerror}). Choose another with WAYBILL_HOME.") from error
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def _database(settings: UpSettings, home: Path, console: Console) -> Iterator[tuple[DatabaseUrl, Callable[[], None]]]:
    """The database's address, and what to do every second to keep it there."""
    if not settings.embedded:
        console.say(f"Postgres: {settings.database_url}")
        yield settings.database_url, lambda: None
        return

    postgres = EmbeddedPostgres(home)

    def keep_alive() -> None:
        if not postgres.running:
            console.bad("Postgres stopped by itself; starting it again.")
            postgres.start()

    try:
        postgres.start()
        console.say(
            f"Postgres runs on 127.0.0.1:{postgres.port}; its data is in {postgres.data}, its log is {postgres.log}"
        )
        url = postgres.create_database("waybill")
        local_address.publish(home, url)
        yield DatabaseUrl(url), keep_alive
    finally:
        local_address.withdraw(home)
        try:
            postgres.stop()
        except KeyboardInterrupt:
            postgres.stop("immediate")


def _interruptible() -> None:
    """Outside the supervisor's loop, a request to stop interrupts whatever we do."""
    for each in stop_signals():
        signal.signal(each, signal.default_int_handler)
