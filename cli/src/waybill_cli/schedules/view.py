"""How a schedule's name is typed, and how its state and ticks are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.text import Text

from waybill.console.human_units import ago
from waybill.console.terminal import styled
from waybill.errors import Refused
from waybill_engine.cron import Cron
from waybill_engine.kinds import is_name
from waybill_engine.schedule_models import ScheduleRow


def _schedule_name(value: str) -> str:
    if not is_name(value):
        raise typer.BadParameter(f"{value!r} cannot be a schedule: lower case letters, digits and _, at most 63")
    return value


Name = Annotated[str, typer.Argument(parser=_schedule_name, metavar="NAME", hidden=True)]


def cron_of(schedule: ScheduleRow) -> Cron | None:
    """The schedule's cron expression; None if it is invalid here, which is then why the schedule is paused."""
    try:
        return Cron(schedule.cron, schedule.timezone)
    except Refused:
        return None


def next_ticks(schedule: ScheduleRow, now: datetime, count: int) -> list[datetime]:
    """The tick that it waits for, which may be overdue, and those after it. Empty while it is paused."""
    cron = cron_of(schedule)
    if cron is None or schedule.paused_at is not None or schedule.next_at is None:
        return []
    return [schedule.next_at, *islice(cron.after(max(schedule.next_at, now)), count - 1)]


def on_the_wall(tick: datetime, timezone: str) -> str:
    """The tick in its time zone: `Tue 2026-11-17 02:30 CET`."""
    return f"{tick.astimezone(ZoneInfo(timezone)):%a %Y-%m-%d %H:%M %Z}"


def in_both(tick: datetime, timezone: str) -> str:
    """The tick in its time zone and in UTC: `Tue 2026-11-17 02:30 CET (01:30 UTC)`."""
    shown, utc = on_the_wall(tick, timezone), tick.astimezone(UTC)
    if shown.endswith(" UTC"):
        return shown
    day = "" if utc.date() == tick.astimezone(ZoneInfo(timezone)).date() else f"{utc:%a} "
    return f"{shown} ({day}{utc:%H:%M} UTC)"


def status(schedule: ScheduleRow, now: datetime) -> Text:
    if schedule.paused_at is not None:
        why = f": {schedule.paused_reason}" if schedule.paused_reason else ""
        return styled(f"paused {ago(schedule.paused_at, now)}{why}", "bold yellow")
    if schedule.next_at is None:
        return Text("over", "dim")
    return Text("on", "green")
