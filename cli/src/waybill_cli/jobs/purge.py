"""`waybill jobs purge`: deletes finished jobs of a certain age, after confirmation."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from waybill.console.database import with_database
from waybill.console.exits import ExitCode
from waybill.console.human_units import counted, duration
from waybill.console.options import AsJson, Kind, Tenant, age
from waybill.console.terminal import print_json, print_line, remark, safe
from waybill.db import Database
from waybill_engine import State, control, queries

_UNLESS_SAID = [State.SUCCEEDED, State.CANCELLED]
"""Failed jobs are only deleted if they are named, because people should look at them first."""

_FINAL = ", ".join(state for state in State if state.final)


def purge(
    older_than: Annotated[
        float,
        typer.Option("--older-than", parser=age, metavar="DURATION", help="How long ago they ended: 12h, 30d, 2w."),
    ],
    state: Annotated[
        list[State] | None,
        typer.Option("--state", metavar="STATE", help=f"May be repeated: {_FINAL}."),
    ] = None,
    kind: Kind = None,
    tenant: Tenant = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the jobs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete finished jobs and their history.

    It deletes succeeded and cancelled jobs unless --state says otherwise, because people should look at failed ones.
    Pinned jobs and jobs of tenants under legal hold stay. The janitor's next run removes the files of deleted jobs.
    """
    states = list(dict.fromkeys(state or _UNLESS_SAID))
    if unfinished := [each for each in states if not each.final]:
        raise typer.BadParameter(
            f"only finished jobs can be purged, not {', '.join(unfinished)}. Choose from: {_FINAL}",
            param_hint="--state",
        )
    age_limit = timedelta(seconds=older_than)

    async def count(database: Database) -> int:
        async with database.transaction() as session:
            return await queries.count_finished(session, older_than=age_limit, states=states, kind=kind, tenant=tenant)

    async def delete(database: Database) -> int:
        async with database.hot() as connection:
            return await control.purge(connection, older_than=age_limit, states=states, kind=kind, tenant=tenant)

    what = _described(states, older_than, kind, tenant)
    matching = deleted = 0
    if dry_run or not yes:
        matching = with_database(count)
    if not dry_run and (yes or (matching and _agreed(matching, what))):
        deleted = with_database(delete)
    if as_json:
        print_json({"dry_run": dry_run, "matching": max(matching, deleted), "deleted": deleted})
    elif dry_run:
        print_line(f"Would delete {counted(matching, 'job')} {what}.")
    else:
        print_line(f"Deleted {counted(deleted, 'job')} {what}.")


def _described(states: list[State], older_than: float, kind: str | None, tenant: str | None) -> str:
    of = "".join(
        f" of {name} {safe(value)}" for name, value in (("kind", kind), ("tenant", tenant)) if value is not None
    )
    return f"({', '.join(states)}){of} that ended more than {duration(older_than)} ago"


def _agreed(matching: int, what: str) -> bool:
    """Ask for confirmation. Anything but a yes ends the command."""
    try:
        agreed = typer.confirm(f"Delete {counted(matching, 'job')} {what}, for good?", err=True)
    except typer.Abort:  # there is nobody to ask
        agreed = False
    if not agreed:
        remark("Nothing was deleted. Use --yes to delete without asking, or --dry-run to only count.")
        raise typer.Exit(ExitCode.REFUSED)
    return True
