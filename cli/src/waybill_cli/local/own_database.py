"""The database for commands that work without `make up`, too: they start the embedded one themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waybill.config import CommonSettings, DatabaseUrl, load
from waybill.console.database import NoDatabase
from waybill.console.local_address import published_url
from waybill.console.terminal import remark
from waybill.errors import Refused
from waybill_cli.local.lock import LockedError, take_lock
from waybill_cli.local.postgres import EmbeddedPostgres, PostgresError

_EMBEDDED = DatabaseUrl("postgresql://embedded")


@contextmanager
def database_settings(*, alone: bool) -> Iterator[CommonSettings]:
    """The settings with a database that runs: the named one, that of the running `make up`, or one that we start.

    With `alone`, a running `make up` is refused, because its services use the database; and if there is no database
    yet, it is made.
    """
    settings = load(CommonSettings, database_url=_EMBEDDED)
    if settings.database_url != _EMBEDDED:
        yield settings
        return
    home = settings.home.absolute()
    if not alone and not (home / "postgres").exists():
        raise NoDatabase(
            f"No database: WAYBILL_DATABASE_URL is not set, and there is none in {home}. Go to the folder in which "
            "`make up` runs, or set WAYBILL_HOME."
        )
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        lock = take_lock(home / "up.lock")  # `make up` cannot start meanwhile
    except LockedError as error:
        yield settings.model_copy(update={"database_url": _of_running(home, error.holder, alone=alone)})
        return
    try:
        remark(f"Starting the database in {home} …")
        with _started(home) as url:
            yield settings.model_copy(update={"database_url": url})
    finally:
        os.close(lock)


def _of_running(home: Path, holder: str, *, alone: bool) -> DatabaseUrl:
    if alone:
        raise Refused(
            f"`make up` runs with {home} (process {holder}), and its services use the database. Stop it with Ctrl-C, "
            "then try again: the database is started for you."
        )
    url = published_url(home)
    if url is None:
        raise Refused(f"The `make up` with {home} is starting or stopping. Try again in a moment.")
    return DatabaseUrl(url)


@contextmanager
def _started(home: Path) -> Iterator[DatabaseUrl]:
    postgres = EmbeddedPostgres(home)
    try:
        postgres.start()
        url = DatabaseUrl(postgres.create_database("waybill"))
    except PostgresError as error:
        postgres.stop()
        raise Refused(str(error)) from error
    try:
        yield url
    finally:
        postgres.stop()
