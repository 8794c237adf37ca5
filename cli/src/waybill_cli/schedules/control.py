"""`waybill schedules rm`, `pause`, `resume` and `run`."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer

from waybill.console.database import with_database
from waybill.console.options import AsJson
from waybill.console.terminal import print_json, print_line, remark
from waybill.db import Database
from waybill_cli.schedules.view import Name
from waybill_engine import schedules


def rm(name: Name, as_json: AsJson = False) -> None:
    """Remove a periodic job. What it has enqueued stays."""

    async def act(database: Database) -> None:
        async with database.hot() as connection:
            await schedules.remove(connection, name)

    with_database(act)
    if as_json:
        print_json({"schedule": name, "removed": True})
    else:
        print_line(f"Schedule {name} is removed. Jobs it has enqueued stay.")


def pause(
    name: Name,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="The reason, kept with the schedule.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Pause a periodic job. Ticks that come in the meantime are not made up for."""

    async def act(database: Database) -> None:
        async with database.hot() as connection:
            await schedules.pause(connection, name, reason)

    with_database(act)
    if as_json:
        print_json({"schedule": name, "paused": True})
    else:
        print_line(f"Schedule {name} is paused. Resume it with: waybill schedules resume {name}")


def resume(name: Name, as_json: AsJson = False) -> None:
    """Let a paused periodic job go on with its next tick."""

    async def act(database: Database) -> bool:
        async with database.hot() as connection:
            return await schedules.resume(connection, name)

    was_paused = with_database(act)
    if as_json:
        print_json({"schedule": name, "paused": False, "was_paused": was_paused})
    else:
        print_line(f"Schedule {name} goes on." if was_paused else f"Schedule {name} was not paused.")


def run(name: Name, as_json: AsJson = False) -> None:
    """Enqueue one job now, beside the ticks, and print its id."""

    async def act(database: Database) -> uuid.UUID:
        async with database.hot() as connection:
            return await schedules.run_now(connection, name)

    job_id = with_database(act)
    if as_json:
        print_json({"schedule": name, "job_id": job_id})
    else:
        print_line(str(job_id))
        remark(f"Enqueued. Follow it with: waybill jobs show {job_id}")
