"""`waybill schedules show`: shows everything about one periodic job, with its next ticks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.text import Text

from waybill.console.database import with_database
from waybill.console.human_units import ago, duration, moment
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_facts, print_table
from waybill.console.terminal import print_json, print_line, styled
from waybill.db import Database
from waybill.errors import NotFound
from waybill_cli.job_view import state_text
from waybill_cli.records import schedule_record
from waybill_cli.schedules.view import Name, cron_of, in_both, next_ticks, on_the_wall, status
from waybill_engine import Job, queries
from waybill_engine.schedule_models import ScheduleRow
from waybill_engine.schedules import Missed

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _ShownSchedule:
    schedule: ScheduleRow
    last: Job | None
    now: datetime


def show(name: Name, as_json: AsJson = False) -> None:
    """Show one periodic job, its last tick and its next ones."""

    async def read(database: Database) -> _ShownSchedule:
        async with database.transaction() as session:
            schedule = await queries.get_schedule(session, name)
            last = None
            if schedule.last_job_id is not None:
                try:
                    last = await queries.get_job(session, schedule.last_job_id)
                except NotFound:
                    last = None  # it was purged
            return _ShownSchedule(schedule, last, await queries.database_time(session))

    seen = with_database(read)
    ticks = next_ticks(seen.schedule, seen.now, _SHOWN)
    if as_json:
        state = seen.last.state if seen.last else None
        print_json(schedule_record(seen.schedule) | {"last_job_state": state, "next_ticks": ticks})
        return
    print_line(Text(seen.schedule.name, "bold"))
    print_facts(list(_facts(seen)))
    if ticks:
        print_line()
        print_line(Text("Next", "bold"))
        _print_ticks(seen.schedule.timezone, ticks, seen.now)


def _print_ticks(timezone: str, ticks: list[datetime], now: datetime) -> None:
    in_utc = on_the_wall(ticks[0], timezone).endswith(" UTC")
    print_table(
        [Column(""), Column("", drop=1), Column("", drop=2)],
        [
            (
                styled(on_the_wall(tick, timezone)),
                styled("" if in_utc else f"{tick.astimezone(UTC):%Y-%m-%d %H:%M} UTC", "dim"),
                styled(ago(tick, now) if tick > now else "due"),
            )
            for tick in ticks
        ],
        indent=2,
    )


def _facts(seen: _ShownSchedule) -> Iterator[tuple[str, Text]]:
    schedule, now = seen.schedule, seen.now
    cron = cron_of(schedule)
    yield "status", status(schedule, now)
    yield "when", styled(f"{cron.words}, {schedule.timezone}" if cron else f"unknown in {schedule.timezone}")
    yield "cron", styled(schedule.cron)
    yield "missed", styled(_missed(schedule))
    if schedule.last_tick is not None:
        shown = in_both(schedule.last_tick, schedule.timezone) if cron else moment(schedule.last_tick)
        yield "last", styled(f"{shown}, {ago(schedule.last_tick, now)}")
        job = styled(f"job {schedule.last_job_id} ")
        yield "", job.append_text(state_text(seen.last.state) if seen.last else Text("purged", "dim"))
    yield "kind", styled(schedule.kind)
    yield "queue", styled(schedule.queue)
    yield "tenant", styled(schedule.tenant)
    yield "priority", styled(schedule.priority)
    yield "cost", styled(schedule.cost)
    yield "attempts", styled(schedule.max_attempts)
    yield "time limit", styled(f"{duration(schedule.time_limit)} a run")
    yield "created", styled(f"{moment(schedule.created_at)} ({ago(schedule.created_at, now)})")
    if schedule.updated_at != schedule.created_at:
        yield "changed", styled(f"{moment(schedule.updated_at)} ({ago(schedule.updated_at, now)})")
    yield "payload", styled(json.dumps(schedule.payload, ensure_ascii=False))


def _missed(schedule: ScheduleRow) -> str:
    return {
        Missed.SKIP: f"skip: a tick more than {duration(schedule.grace)} late is dropped",
        Missed.ONCE: "once: one job makes up for all that were missed",
        Missed.ALL: "all: one job for each that was missed",
    }[Missed(schedule.missed)]
