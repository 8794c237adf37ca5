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
from waybill.db.schema import RELEASE_0_1_0, Standing, current, standings


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 unless the schema is current.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the database's schema up to date: the platform's, the engine's and that of every installed pipeline.

    Safe to run from several places at once: one works, the others wait.
    """
    if check:
        _check(as_json)
    else:
        _upgrade(as_json)


def _check(as_json: bool) -> None:
    async def look(database: Database) -> tuple[frozenset[str], SchemaMismatch | None]:
        async with database.hot() as connection:
            at = await current(connection)
            try:
                await check_schema(connection)
            except SchemaMismatch as mismatch:
                return at, mismatch
            return at, None

    at, mismatch = with_database(look, patient=True, schema=False)
    found = standings(at)
    if as_json:
        print_json(
            {
                "branches": [{"branch": one.branch, "current": one.at, "wanted": one.wanted} for one in found],
                "revisions": sorted(at),
                "up_to_date": mismatch is None,
            }
        )
    elif mismatch is None:
        print_line("The schema is up to date:")
        for one in found:
            print_line(f"  {one.branch:<13}{one.at}")
    if mismatch is not None:
        complain(mismatch.message)
        raise typer.Exit(ExitCode.REFUSED)


def _upgrade(as_json: bool) -> None:
    async def apply(database: Database) -> tuple[frozenset[str], frozenset[str]]:
        before = await _revisions(database)
        await upgrade(database.url.url)
        return before, await _revisions(database)

    before, after = with_database(apply, patient=True, schema=False)
    steps = list(zip(standings(before), standings(after), strict=True))
    if as_json:
        branches = [{"branch": new.branch, "from": old.at, "to": new.at} for old, new in steps]
        print_json({"branches": branches, "changed": before != after})
    elif before == after:
        print_line("The schema was up to date already:")
        for _, new in steps:
            print_line(f"  {new.branch:<13}{new.at}")
    else:
        print_line("Migrated the schema:")
        for old, new in steps:
            print_line(f"  {new.branch:<13}{_step(old, new, before)}")


def _step(old: Standing, new: Standing, before: frozenset[str]) -> str:
    if old.at == new.at:
        return f"{new.at}, as before"
    return f"{old.at or ('release 0.1.0' if RELEASE_0_1_0 in before else 'empty')} -> {new.at}"


async def _revisions(database: Database) -> frozenset[str]:
    async with database.hot() as connection:
        return await current(connection)
