"""`waybill up`: the whole product in the foreground, on this machine.

It locks the home folder, ends what a killed predecessor left, checks the ports, starts Postgres, migrates it and starts
the services. At the end it undoes all that in reverse order, however the end comes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from waybill import log
from waybill.config import DatabaseUrl
from waybill.console import human_units, local_address
from waybill.db import Database
from waybill.db.migrations import upgrade
from waybill.errors import WaybillError
from waybill.readiness import notify_ready
from waybill.security import keys
from waybill_cli.local import gateway_secret
from waybill_cli.local.addresses import Address, PortError, check_all
from waybill_cli.local.database_keeper import DatabaseKeeper
from waybill_cli.local.lock import LockedError, take_lock
from waybill_cli.local.observers.group import ObserverGroup, observing
from waybill_cli.local.orphans import MARK, end_orphans
from waybill_cli.local.postgres import EmbeddedPostgres, PostgresError
from waybill_cli.local.postgres.places import left_data
from waybill_cli.local.screen import Screen
from waybill_cli.local.service import Service
from waybill_cli.local.service_group import Keeper, ServiceGroup, stop_signals
from waybill_cli.local.settings import Plan, UpSettings

SERVICES = (
    Service("worker", "waybill_worker"),
    Service("gateway", "waybill_gateway"),
    Service("janitor", "waybill_janitor", ("--every",)),
    Service("api", "waybill_api"),
)


class UpError(Exception):
    """Waybill cannot run here now; the message says what to do about it."""


def run_everything(plan: Plan, *, observe: bool = False) -> int:
    """Run until Ctrl-C or SIGTERM, and return the exit code, which is 0 after such a stop."""
    settings, addresses = plan.settings, plan.addresses
    screen = Screen(tuple(service.name for service in SERVICES))
    home = settings.home.resolve()
    if settings.log_format == "auto":  # all services write for the person at this terminal
        settings = settings.model_copy(update={"log_format": "console"})
    log.configure(settings, service="up")
    logging.getLogger("alembic").setLevel(logging.WARNING)  # only failed migrations matter here
    _interruptible()
    try:
        with _locked(home):
            end_orphans(home)
            check_all({**addresses, **{f"{name} metrics": each for name, each in plan.metrics.items() if observe}})
            with (
                _database(settings, home, screen) as (url, keepers),
                _observers(plan, home, screen, wanted=observe) as observers,
            ):
                settings = settings.model_copy(update={"database_url": url})
                try:
                    code = asyncio.run(_serve(settings, addresses, home, keepers, observers, screen))
                finally:
                    _interruptible()
                    end_orphans(home)
    except KeyboardInterrupt:  # while we start or stop; in between, the group handles it
        code = 0
    except (UpError, PortError, PostgresError) as error:
        screen.bad(str(error))
        return 1
    screen.say("Stopped.")
    return code


async def _serve(
    settings: UpSettings,
    addresses: Mapping[str, Address],
    home: Path,
    keepers: Sequence[Keeper],
    observers: ObserverGroup,
    screen: Screen,
) -> int:
    gateway_secret.provide(home)
    environment = {**_environment(settings, addresses, home, screen), **observers.environment}
    # The worker's own grace period comes first; ours only ends what ignores its own.
    group = ServiceGroup(SERVICES, environment, addresses, screen, grace=settings.shutdown_grace + 10)

    async def prepare() -> None:
        await _migrate(settings)
        first_key = await _first_admin_key(settings)
        if first_key is not None:  # it is printed at once, so that it has been seen whatever happens next
            screen.good(f"Your admin key, shown only this once: {first_key}")
            screen.say("Sign in with it, or send it as 'Authorization: Bearer …'. More: waybill apikey --help")

    def all_ready() -> None:
        screen.good(f"Waybill is ready: {addresses['api'].url} (Ctrl-C stops it)")
        for place in observers.places:
            screen.good(place)
        notify_ready()  # we may be a service ourselves

    return await group.run(prepare=prepare, on_ready=all_ready, beside=[*keepers, *observers.keepers])


def _environment(settings: UpSettings, addresses: Mapping[str, Address], home: Path, screen: Screen) -> dict[str, str]:
    """What the services see: our own environment, and the settings that we decide."""
    return {
        **os.environ,
        "WAYBILL_DATABASE_URL": settings.database_url.url,
        "WAYBILL_GATEWAY_URL": addresses["gateway"].url,  # the one we run
        "WAYBILL_HOME": str(home),
        "WAYBILL_LOG_FORMAT": settings.log_format,
        "PYTHONUNBUFFERED": "1",
        **({"FORCE_COLOR": "1"} if screen.coloured else {}),  # their lines reach a terminal through our pipe
        MARK: str(home),
    }


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
    """A new admin key if there is none yet, as when Waybill starts for the first time."""
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
            f"Waybill already runs with {home} (process {error.holder}). Stop it first, or give this one its own "
            "folder and ports: WAYBILL_HOME, WAYBILL_API_PORT, WAYBILL_GATEWAY_PORT."
        ) from None
    except OSError as error:
        raise UpError(f"{home} cannot be used ({error.strerror}). Choose another with WAYBILL_HOME.") from error
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def _database(settings: UpSettings, home: Path, screen: Screen) -> Iterator[tuple[DatabaseUrl, Sequence[Keeper]]]:
    """The database's URL, and what keeps the database running."""
    if not settings.embedded:
        screen.say(f"Postgres: {settings.database_url}")
        yield settings.database_url, ()
        return

    postgres = EmbeddedPostgres(home)
    try:
        postgres.start()
        _say_where_it_is(postgres, home, screen)
        url = postgres.create_database("waybill")
        local_address.publish(home, url)
        keeper = DatabaseKeeper(postgres, screen, min_free=settings.storage_min_free_mb * 2**20)
        yield DatabaseUrl(url), [keeper.keep]
    finally:
        local_address.withdraw(home)
        try:
            postgres.stop()
        except KeyboardInterrupt:
            postgres.stop("immediate")


@contextmanager
def _observers(plan: Plan, home: Path, screen: Screen, *, wanted: bool) -> Iterator[ObserverGroup]:
    """What looks at the services. It outlives them, so that their last spans arrive."""
    if not wanted:
        yield ObserverGroup()
        return
    with observing(home, plan.metrics, screen, traces=plan.settings) as observers:
        yield observers


def _say_where_it_is(postgres: EmbeddedPostgres, home: Path, screen: Screen) -> None:
    screen.say(f"Postgres runs on 127.0.0.1:{postgres.port}; its data is in {postgres.data}, its log is {postgres.log}")
    if not postgres.data.is_relative_to(home):
        screen.say(
            f"Its data is not in {home}, because you are root and Postgres may not enter that folder. Removing {home} "
            f"does not remove it: rm -r {home} {postgres.data.parent}"
        )
    for left in left_data():
        screen.bad(
            f"The database of {left.home}, which is gone, is still in {left.place} ({human_units.size(left.bytes)}). "
            f"To remove it: rm -r {left.place}"
        )


def _interruptible() -> None:
    """Let a stop signal interrupt us wherever we are outside the group's loop."""
    for each in stop_signals():
        signal.signal(each, signal.default_int_handler)
