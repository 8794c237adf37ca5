"""`waybill janitor history`: what the last runs did, and all of them together."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.human_units import ago, duration
from waybill.console.options import AsJson, Limit
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill.janitor import history as runs
from waybill.janitor.history import Figures, RunRecord, TaskRecord
from waybill.janitor.models import TaskOutcome
from waybill.janitor.task import NEXT_LOOK

_RUNS = (
    Column("RUN"),
    Column("STARTED"),
    Column("TOOK", right=True, drop=2),
    Column("OUTCOME"),
    Column("BY", drop=3, most=30),
    Column("DID", least=20, wraps=True),
)
_TASKS = (
    Column("TASK"),
    Column("OUTCOME"),
    Column("TOOK", right=True, drop=2),
    Column("DID", least=20, wraps=True),
)
_STYLES = {
    TaskOutcome.FAILED: "bold red",
    TaskOutcome.DIED: "yellow",
    TaskOutcome.UNFINISHED: "yellow",
    TaskOutcome.DONE: "green",
}


def history(
    limit: Limit = 10,
    last: Annotated[bool, typer.Option("--last", help="The last run, task by task.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the janitor's runs, newest first; with --last the tasks of the last one."""

    async def read(database: Database) -> tuple[list[RunRecord], datetime | None, Figures]:
        async with database.hot() as connection:
            found, now = await runs.runs(connection, limit=1 if last else limit)
            return found, now, await runs.figures(connection)

    found, now, figures = with_database(read)
    if as_json:
        print_json({"runs": [asdict(one) for one in found], "totals": _totals(figures)})
    elif not found or now is None:
        remark("The janitor has not run yet.")
    elif last:
        print_table(_TASKS, [_task_row(one) for one in found[0].tasks])
        _say_found(found[0])
    else:
        print_table(_RUNS, [_run_row(one, now) for one in found])


def _run_row(run: RunRecord, now: datetime) -> list[Text]:
    did = "; ".join(f"{task.task}: {_counts(task.done)}" for task in run.tasks if any(task.done.values()))
    failed = "; ".join(f"{task.task}: {task.error}" for task in run.tasks if task.error)
    return [
        Text(str(run.id)[-6:]),
        Text(ago(run.started_at, now)),
        Text(_took(run.started_at, run.finished_at)),
        Text(run.outcome, _STYLES.get(run.outcome, "")),
        styled(run.holder),
        styled("; ".join(part for part in (failed, did) if part) or "nothing to do"),
    ]


def _task_row(task: TaskRecord) -> list[Text]:
    return [
        Text(task.task),
        Text(task.outcome, _STYLES.get(task.outcome, "")),
        Text(_took(task.started_at, task.finished_at)),
        styled(task.error or _counts(task.done) or ("not looked" if NEXT_LOOK in task.found else "nothing to do")),
    ]


def _say_found(run: RunRecord) -> None:
    print_line()
    for task in run.tasks:
        if task.found:
            print_line(styled(f"{task.task}: " + ", ".join(f"{name} {value:g}" for name, value in task.found.items())))


def _took(started: datetime, finished: datetime | None) -> str:
    return duration((finished - started).total_seconds()) if finished else ""


def _counts(done: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in done.items() if count)


def _totals(figures: Figures) -> dict[str, Any]:
    totals: dict[str, dict[str, int]] = {}
    for (task, figure), total in figures.totals.items():
        totals.setdefault(task, {})[figure] = total
    return totals
