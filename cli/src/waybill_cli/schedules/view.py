"""How a schedule is typed and how it looks: its name, its state, its ticks in the zone's time and in UTC."""

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
from waybill_engine.models import ScheduleRow


def _schedule_name(value: str) -> str:
    if not is_name(value):
        raise typer.BadParameter(f"{value!r} cannot be a schedule: lower case letters, digits and _, at most 63")
    return value


Name = Annotated[str, typer.Argument(parser=_schedule_name, metavar="NAME", hidden=True)]


def cron_of(schedule: ScheduleRow) -> Cron | None:
    """Its ticks; None if they cannot be told here, which is then why it is paused."""
    try:
        return Cron(schedule.cron, schedule.timezone)
    except Refused:
        return None


def next_ticks(schedule: ScheduleRow, now: datetime, count: int) -> list[datetime]:
    """The tick it waits for, which may be owed already, and those after it. None while it is paused."""
    cron = cron_of(schedule)
    if cron is None or schedule.paused_at is not None or schedule.next_at is None:
        return []
    return [schedule.next_at, *islice(cron.after(max(schedule.next_at, now)), count - 1)]


def on_the_wall(tick: datetime, timezone: str) -> str:
    """As the zone's clocks show it: `Tue 2026-11-17 02:30 CET`."""
    return f"{tick.astimezone(ZoneInfo(timezone)):%a %Y-%m-%d %H:%M %Z}"


def in_both(tick: datetime, timezone: str) -> str:
    """As the zone's clocks show it, and in UTC: `Tue 2026-11-17 02:30 CET (01:30 UTC)`."""
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
