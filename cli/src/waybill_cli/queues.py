"""`waybill queue`: counts the jobs of each queue, says how many workers they call for, and pauses queues."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.human_units import ago, counted, duration
from waybill.console.options import AsJson, seconds
from waybill.console.tables import Column, print_facts, print_table
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill_cli.job_view import STYLES
from waybill_cli.jobs.enqueue import kind_names, known_kind
from waybill_cli.records import backlog_record, queue_record
from waybill_engine import State, control, queries
from waybill_engine.backlog import DRAIN_TARGET, Backlog, read_backlog
from waybill_engine.queries import QueueStats

app = typer.Typer(help="Operate queues: stats, backlog, pause, resume.", no_args_is_help=True, rich_markup_mode=None)

_COUNTED = (State.QUEUED, State.SCHEDULED, State.RUNNING, State.FAILED, State.DEAD_LETTER)
_HELD = {
    "scheduled": "scheduled for later",
    "children": "waiting for their children",
    "sequence": "waiting for their turn",
    "queue_paused": "in a paused queue",
    "breaker": "behind a breaker",
    "cap": "at a cap",
    "rate": "at a rate",
    "isolated": "to run alone",
}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def _queue_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise typer.BadParameter(f"{value!r} cannot be a queue. Use at most 63 lower case letters, digits and _")
    return value


Name = Annotated[str, typer.Argument(parser=_queue_name, metavar="NAME", hidden=True)]


@app.command()
def stats(as_json: AsJson = False) -> None:
    """Count jobs by queue and state. 2,000+ means that there may be more: counting stops there."""

    async def read(database: Database) -> tuple[list[QueueStats], datetime]:
        async with database.transaction() as session:
            return await queries.queue_stats(session), await queries.database_time(session)

    queues, now = with_database(read)
    if as_json:
        print_json({"queues": [queue_record(each) for each in queues]})
    elif not queues:
        remark("No queues yet; the first job creates one. `waybill selftest` enqueues a job and follows it.")
    else:
        _print(queues, now)


def _print(queues: Sequence[QueueStats], now: datetime) -> None:
    columns = [
        Column("QUEUE"),
        Column("QUEUED", right=True),
        Column("SCHEDULED", right=True, drop=4),
        Column("RUNNING", right=True, drop=2),
        Column("FAILED", right=True, drop=3),
        Column("DEAD", right=True, drop=1),
        Column("OLDEST", right=True, drop=5),
        Column("STATUS", least=7),
    ]
    print_table(columns, [_row(each, now) for each in queues])


def _row(queue: QueueStats, now: datetime) -> list[Text]:
    counts = [queue.counts.get(state, 0) for state in _COUNTED]
    waiting = (now - queue.oldest_queued_at).total_seconds() if queue.oldest_queued_at else None
    return [
        styled(queue.queue),
        *(
            Text(f"{count:,}{'+' if state in queue.at_least else ''}", STYLES[state] if count else "dim")
            for state, count in zip(_COUNTED, counts, strict=True)
        ),
        styled(duration(waiting) if waiting is not None else "-", "" if waiting is not None else "dim"),
        _status(queue, now),
    ]


def _status(queue: QueueStats, now: datetime) -> Text:
    if queue.paused_at is None:
        return Text("open", "green")
    why = f": {queue.paused_reason}" if queue.paused_reason else ""
    return styled(f"paused {ago(queue.paused_at, now)}{why}", "bold yellow")


@app.command()
def backlog(
    names: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", help="A queue that the workers serve. May be repeated."),
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="A kind that they serve. May be repeated.")
    ] = None,
    slots: Annotated[
        int, typer.Option("--slots", metavar="N", min=1, max=1_000_000, help="How many jobs one worker runs at once.")
    ] = 10,
    target: Annotated[
        float,
        typer.Option(
            "--drain-target", parser=seconds, metavar="DURATION", help="The time in which what waits should be gone."
        ),
    ] = DRAIN_TARGET,
    as_json: AsJson = False,
) -> None:
    """Say how many workers the waiting jobs call for, and which jobs more workers would not help."""

    async def read(database: Database) -> tuple[Backlog, datetime]:
        async with database.hot() as connection:
            found = await read_backlog(connection, names or (), kinds or (), slots=slots, drain_target=target)
        async with database.transaction() as session:
            return found, await queries.database_time(session)

    found, now = with_database(read)
    if as_json:
        print_json(backlog_record(found))
        return
    drained = "never: no worker serves it" if found.seconds_to_drain is None else duration(found.seconds_to_drain)
    waited = f" (the oldest for {duration((now - found.oldest).total_seconds())})" if found.oldest else ""
    wanted = counted(found.wanted, "worker", "workers")
    print_facts(
        [
            ("wanted", Text(f"{wanted} with {counted(slots, 'slot', 'slots')} each, to be done in {duration(target)}")),
            ("queued", Text(f"{'about ' if found.estimated else ''}{found.queued:,}{waited}")),
            ("running", Text(f"{found.running:,}")),
            ("drained in", Text(drained)),
            ("held", Text(", ".join(f"{jobs:,} {_HELD[why]}" for why, jobs in sorted(found.held.items())) or "0")),
        ],
        indent=0,
    )


@app.command()
def pause(
    name: Name,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="The reason, for others.")] = None,
    as_json: AsJson = False,
) -> None:
    """Pause a queue. Running jobs continue, but no new ones start."""

    async def hold(database: Database) -> set[str]:
        async with database.transaction() as session:
            used = {each.queue for each in await queries.queue_stats(session)}
            used |= {queue for worker in await queries.list_workers(session) for queue in worker.queues}
        async with database.hot() as connection:
            await control.pause(connection, name, reason)
        return used | {known_kind(name).queue for name in kind_names()}

    known = with_database(hold)
    if as_json:
        print_json({"queue": name, "paused": True, "known": name in known})
    else:
        print_line(f"Queue {name} is paused. Resume it with: waybill queue resume {name}")
    if name not in known:
        remark(f"No job, kind or worker uses a queue {name} so far; known are {', '.join(sorted(known))}.", "yellow")


@app.command()
def resume(name: Name, as_json: AsJson = False) -> None:
    """Resume a paused queue."""

    async def open_again(database: Database) -> bool:
        async with database.hot() as connection:
            return await control.resume(connection, name)

    was_paused = with_database(open_again)
    if as_json:
        print_json({"queue": name, "paused": False, "was_paused": was_paused})
    else:
        print_line(f"Queue {name} is open again." if was_paused else f"Queue {name} was not paused.")
