"""`waybill migrate`: apply the revisions that this program needs to the database's schema, or say where it stands."""

from __future__ import annotations

from typing import Annotated

import typer

from waybill.console.database import with_database
from waybill.console.exits import ExitCode
from waybill.console.options import AsJson, seconds
from waybill.console.terminal import complain, print_json, print_line
from waybill.db import Database, SchemaMismatch, check_schema
from waybill.db.migrations import PATIENCE, upgrade
from waybill.db.schema import BranchStatus, DatabaseSchema, branch_statuses, current


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 unless this release can run on the schema.")
    ] = False,
    patience: Annotated[
        float,
        typer.Option(
            parser=seconds,
            metavar="DURATION",
            help="How long to keep trying while others, such as a backup, hold locks on the tables.",
        ),
    ] = PATIENCE,
    as_json: AsJson = False,
) -> None:
    """Bring the database's schema up to date: the platform's, the engine's and that of every installed pipeline.

    Safe while services run, and from several places at once: one works, the others wait. If it is interrupted, run it
    again: it continues where it stopped.
    """
    if check:
        _check(as_json)
    else:
        _upgrade(patience, as_json)


def _check(as_json: bool) -> None:
    async def look(database: Database) -> tuple[DatabaseSchema, SchemaMismatch | None]:
        async with database.hot() as connection:
            schema = await current(connection)
            try:
                await check_schema(connection)
            except SchemaMismatch as mismatch:
                return schema, mismatch
            return schema, None

    schema, mismatch = with_database(look, patient=True, schema=False)
    found = branch_statuses(schema.applied)
    if as_json:
        print_json(
            {
                "branches": [{"branch": one.branch, "current": one.at, "wanted": one.wanted} for one in found],
                "revisions": sorted(schema.applied or schema.before_branches),
                "up_to_date": mismatch is None,
            }
        )
    elif mismatch is None:
        print_line("The schema is up to date:")
        _print_statuses(found)
    if mismatch is not None:
        complain(mismatch.message)
        raise typer.Exit(ExitCode.REFUSED)


def _upgrade(patience: float, as_json: bool) -> None:
    async def apply(database: Database) -> tuple[DatabaseSchema, DatabaseSchema]:
        before = await _schema(database)
        await upgrade(database.url.url, patience=patience)
        return before, await _schema(database)

    before, after = with_database(apply, patient=True, schema=False)
    steps = list(zip(branch_statuses(before.applied), branch_statuses(after.applied), strict=True))
    changed = before.applied != after.applied
    if as_json:
        branches = [{"branch": new.branch, "from": old.at, "to": new.at} for old, new in steps]
        print_json({"branches": branches, "changed": changed})
    elif not changed:
        print_line("The schema was up to date already:")
        _print_statuses([new for _, new in steps])
    else:
        print_line("Migrated the schema:")
        for old, new in steps:
            print_line(f"  {new.branch:<13}{_step(old, new, before)}")


def _print_statuses(found: list[BranchStatus]) -> None:
    for one in found:
        newer = "" if one.at == one.wanted else f", newer than this release ({one.wanted}), which can run on it"
        print_line(f"  {one.branch:<13}{one.at}{newer}")


def _step(old: BranchStatus, new: BranchStatus, before: DatabaseSchema) -> str:
    if old.at == new.at:
        return f"{new.at}, as before"
    return f"{old.at or ('release 0.1.0' if before.is_of_release_0_1_0 else 'empty')} -> {new.at}"


async def _schema(database: Database) -> DatabaseSchema:
    async with database.hot() as connection:
        return await current(connection)
