"""How a command reaches the database: `WAYBILL_DATABASE_URL`, or else the `waybill up` that runs beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import asyncpg
from pydantic import Field
from pydantic_settings import NoDecode

from waybill import log
from waybill.config import CommonSettings, DatabaseUrl, load
from waybill.config.values import Bare
from waybill.console.local_address import published_url
from waybill.db import Database
from waybill.errors import DatabaseUnavailable, WaybillError

T = TypeVar("T")

_NOT_GIVEN = DatabaseUrl("postgresql://not-given")
_PATIENCE = 2.0
"""Seconds. A person waits in front of the screen; who wants to wait longer can repeat the command."""


class NoDatabase(WaybillError):
    """Nobody said where the database is, and none runs here."""


class CommandSettings(CommonSettings):
    """What every service understands; only the database may be left out."""

    database_url: Annotated[DatabaseUrl, NoDecode, Bare("DATABASE_URL")] = Field(_NOT_GIVEN)


def find_settings() -> tuple[CommonSettings, bool]:
    """The configuration, and whether its database is the one a `make up` left the address of."""
    settings = load(CommandSettings)
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
    """Run a command's work against the database, and close it however the work ends.

    `patient` waits for Postgres as long as a service would, and says so: for what starts beside it.
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

    return asyncio.run(run())


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
    except asyncpg.PostgresError as error:  # it answers, but does not let us in
        raise DatabaseUnavailable(
            f"Postgres at {settings.database_url} refuses the connection: {error}. Is WAYBILL_DATABASE_URL right?"
        ) from error
