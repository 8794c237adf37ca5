"""`waybill schedules add`: adds a periodic job, or changes one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from waybill.console.database import with_database
from waybill.console.human_units import ago
from waybill.console.options import OPERATOR, AsJson, seconds
from waybill.console.terminal import print_json, print_line
from waybill.db import Database
from waybill.errors import Conflict
from waybill_cli.jobs.enqueue import kind_names, known_kind, payload_argument, tenant_argument
from waybill_cli.records import schedule_record
from waybill_cli.schedules.view import Name, in_both
from waybill_engine import queries
from waybill_engine.schedule_models import ScheduleRow
from waybill_engine.schedules import Declared, Missed, Schedule, declare


def add(
    name: Name,
    kind: Annotated[str, typer.Argument(metavar="KIND", hidden=True, autocompletion=kind_names)],
    cron: Annotated[
        str, typer.Option("--cron", metavar="EXPRESSION", help="Minute, hour, day of month, month, day of week.")
    ],
    timezone: Annotated[
        str, typer.Option("--timezone", metavar="ZONE", help="Whose clocks it means, like Europe/Berlin.")
    ] = "UTC",
    payload: Annotated[
        str, typer.Option("--payload", metavar="JSON", help="A JSON object; - reads it from standard input.")
    ] = "{}",
    tenant: Annotated[str, typer.Option("--tenant", metavar="TENANT", help="Who it is for, who is billed.")] = OPERATOR,
    missed: Annotated[
        Missed, typer.Option("--missed", help="What becomes of ticks while no worker was there.")
    ] = Missed.ONCE,
    grace: Annotated[
        float, typer.Option("--grace", parser=seconds, metavar="DURATION", help="How late is on time, for skip.")
    ] = 60.0,
    queue: Annotated[
        str | None, typer.Option("--queue", metavar="QUEUE", help="Where its jobs wait, if not in their kind's.")
    ] = None,
    priority: Annotated[
        int, typer.Option("--priority", metavar="N", min=-32768, max=32767, help="Higher runs first.")
    ] = 0,
    replace: Annotated[bool, typer.Option("--replace", help="Change the schedule if there is one already.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a kind of job periodically.

    NAME is yours to choose, KIND is what to run: waybill schedules add nightly selftest --cron "30 2 * * *"
    """
    schedule = Schedule(
        name=name,
        kind=known_kind(kind),
        cron=cron,
        tenant=tenant_argument(tenant),
        timezone=timezone,
        payload=payload_argument(payload),
        missed=missed,
        grace=grace,
        queue=queue,
        priority=priority,
    )

    async def write(database: Database) -> tuple[Declared, ScheduleRow, datetime]:
        async with database.hot() as connection, connection.transaction():
            outcome = await declare(connection, schedule)
            if outcome is Declared.CHANGED and not replace:
                raise Conflict(f"There is a schedule {name} already, with other words. Change it with --replace.")
        async with database.transaction() as session:
            return outcome, await queries.get_schedule(session, name), await queries.database_time(session)

    outcome, row, now = with_database(write)
    if as_json:
        print_json(schedule_record(row) | {"outcome": outcome.value})
        return
    did = {Declared.CREATED: "added", Declared.CHANGED: "changed", Declared.UNCHANGED: "there already, just so"}[
        outcome
    ]
    print_line(f"Schedule {name} is {did}. {_comes(row, now)}")


def _comes(row: ScheduleRow, now: datetime) -> str:
    if row.paused_at is not None or row.next_at is None:
        return f"It is paused; resume it with: waybill schedules resume {row.name}"
    return f"It comes next on {in_both(row.next_at, row.timezone)}, {ago(row.next_at, now)}."
