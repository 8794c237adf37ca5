"""`waybill schedules ls`: lists every periodic job and its next tick."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.text import Text

from waybill.console.database import with_database
from waybill.console.human_units import ago
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, remark, styled
from waybill.db import Database
from waybill_cli.records import schedule_record
from waybill_cli.schedules.view import status
from waybill_engine import queries
from waybill_engine.schedule_models import ScheduleRow

_COLUMNS = (
    Column("NAME"),
    Column("KIND", drop=2),
    Column("CRON", drop=1, most=30),
    Column("ZONE", drop=3),
    Column("NEXT"),
    Column("LAST", drop=4),
    Column("STATUS", least=7),
)


def ls(as_json: AsJson = False) -> None:
    """List periodic jobs, and when they come next."""

    async def read(database: Database) -> tuple[Sequence[ScheduleRow], datetime]:
        async with database.transaction() as session:
            return await queries.list_schedules(session), await queries.database_time(session)

    found, now = with_database(read)
    if as_json:
        print_json({"schedules": [schedule_record(each) for each in found]})
    elif not found:
        remark("No schedules. Add one with `waybill schedules add`, or declare it beside its handler.")
    else:
        print_table(_COLUMNS, [_row(each, now) for each in found])


def _row(schedule: ScheduleRow, now: datetime) -> list[Text]:
    return [
        styled(schedule.name),
        styled(schedule.kind),
        styled(schedule.cron),
        styled(schedule.timezone),
        styled(ago(schedule.next_at, now) if schedule.paused_at is None and schedule.next_at else "-"),
        styled(ago(schedule.last_tick, now) or "-"),
        status(schedule, now),
    ]
