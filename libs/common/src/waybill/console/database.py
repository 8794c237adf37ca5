"""How a command finds the database: `WAYBILL_DATABASE_URL`, or else the database of a running `waybill up`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from waybill import log
from waybill.audit import acting_as, command_actor
from waybill.config import CommonSettings, DatabaseUrl, load
from waybill.console.local_address import published_url
from waybill.db import Database
from waybill.errors import DatabaseUnavailable, WaybillError
from waybill.telemetry import traces

T = TypeVar("T")

_NOT_GIVEN = DatabaseUrl("postgresql://not-given")
_PATIENCE = 2.0
"""Seconds. A person is waiting; they can repeat the command if they want to wait longer."""


class NoDatabase(WaybillError):
    """No database was named, and none is running here."""


def find_settings() -> tuple[CommonSettings, bool]:
    """The configuration, and whether its database is that of a running `make up`."""
    settings = load(CommonSettings, database_url=_NOT_GIVEN)
    if settings.database_url != _NOT_GIVEN:
        return settings, False
    url = published_url(settings.home.absolute())
    if url is None:
        raise NoDatabase(
            f"No database: WAYBILL_DATABASE_URL is not set, and no `make up` is running with {settings.home}. "
            "Start one with `make up`, or set WAYBILL_DATABASE_URL."
        )
    return settings.model_copy(update={"database_url": DatabaseUrl(url)}), True


def with_database(work: Callable[[Database], Awaitable[T]], *, patient: bool = False, schema: bool = True) -> T:
    """Run a command's work with a database connection, and close it afterwards.

    With `patient`, it waits for Postgres as long as a service would, and logs that: for commands that start together
    with Postgres.
    """
    settings, local = find_settings()
    quiet: dict[str, object] = {"log_level": "warning" if patient else "error", "log_file": None}
    if not patient:
        quiet["database_connect_timeout"] = min(_PATIENCE, settings.database_connect_timeout)
    settings = settings.model_copy(update=quiet)
    log.configure(settings, service="cli")

    async def run() -> T:
        database = await _connect(settings, local=local, schema=schema)
        try:
            return await work(database)
        finally:
            await database.close()

    traces.start(settings, "cli")
    try:
        with acting_as(command_actor()):
            return asyncio.run(run())
    finally:
        traces.stop()


async def _connect(settings: CommonSettings, *, local: bool, schema: bool) -> Database:
    try:
        return await Database.connect(settings, name="waybill cli", schema=schema)
    except DatabaseUnavailable as error:
        if not local:
            raise
        raise DatabaseUnavailable(
            f"The database of the `make up` with {settings.home} does not answer any more. "
            "Start it again with `make up`."
        ) from error
    except asyncpg.PostgresError as error:  # it answers, but refuses to let us in
        raise DatabaseUnavailable(
            f"Postgres at {settings.database_url} refuses the connection: {error}. Is WAYBILL_DATABASE_URL right?"
        ) from error
