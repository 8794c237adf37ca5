"""`waybill migrate`: bring the database's schema to the one this program was built for, or say where it stands."""

from __future__ import annotations

from typing import Annotated

import typer

from waybill.console.database import with_database
from waybill.console.exits import ExitCode
from waybill.console.options import AsJson
from waybill.console.terminal import complain, print_json, print_line
from waybill.db import Database, SchemaMismatch, check_schema
from waybill.db.migrations import upgrade
from waybill.db.schema import current, head


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 unless the schema is current.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the database's schema up to date.

    Safe to run from several places at once: one works, the others wait.
    """
    if check:
        _check(as_json)
    else:
        _upgrade(as_json)


def _check(as_json: bool) -> None:
    async def look(database: Database) -> tuple[str | None, SchemaMismatch | None]:
        async with database.hot() as connection:
            at = await current(connection)
            try:
                await check_schema(connection)
            except SchemaMismatch as mismatch:
                return at, mismatch
            return at, None

    at, mismatch = with_database(look, patient=True, schema=False)
    if as_json:
        print_json({"current": at, "wanted": head(), "up_to_date": mismatch is None})
    elif mismatch is None:
        print_line(f"The schema is up to date, at {at}.")
    if mismatch is not None:
        complain(mismatch.message)
        raise typer.Exit(ExitCode.REFUSED)


def _upgrade(as_json: bool) -> None:
    async def apply(database: Database) -> tuple[str | None, str | None]:
        before = await _revision(database)
        await upgrade(database.url.url)
        return before, await _revision(database)

    before, after = with_database(apply, patient=True, schema=False)
    if as_json:
        print_json({"from": before, "to": after, "changed": before != after})
    elif before == after:
        print_line(f"The schema was up to date already, at {after}.")
    else:
        print_line(f"Migrated the schema from {before or 'empty'} to {after}.")


async def _revision(database: Database) -> str | None:
    async with database.hot() as connection:
        return await current(connection)
