"""The janitor's runs and their numbers: written while it works, read by `waybill janitor history` and for metrics.

A CronJob's process is gone before anybody could ask it for its figures, so they are kept here: per task of a run what
it did (`done`) and how it found things (`found`), and in `janitor_totals` the sums of all that was ever done.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill.ids import new_id
from waybill.janitor.models import TaskOutcome

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Whoever has the lease knows that every other run that seems to go on is dead.
_BEGIN = """
WITH dead AS (
    UPDATE janitor_runs SET outcome = 'died', finished_at = now() WHERE outcome = 'running' RETURNING id
), dead_tasks AS (
    UPDATE janitor_tasks SET outcome = 'died', finished_at = now()
     WHERE outcome = 'running' AND run_id IN (SELECT id FROM dead)
)
INSERT INTO janitor_runs (id, holder, started_at, outcome) VALUES ($1, $2, now(), 'running')
"""

_BEGIN_TASK = """
INSERT INTO janitor_tasks (run_id, task, started_at, outcome, done, found)
VALUES ($1, $2, now(), 'running', '{}', '{}')
"""

# The task's own numbers and the totals move together.
_NOTE = """
WITH task AS (
    UPDATE janitor_tasks SET done = $3::text::jsonb, found = $4::text::jsonb WHERE run_id = $1 AND task = $2
)
INSERT INTO janitor_totals AS known (task, figure, total)
SELECT $2, figure, amount FROM unnest($5::text[], $6::bigint[]) AS added (figure, amount)
    ON CONFLICT (task, figure) DO UPDATE SET total = known.total + excluded.total
"""

_END_TASK = """
UPDATE janitor_tasks SET finished_at = now(), outcome = $3, error = $4 WHERE run_id = $1 AND task = $2
"""

_END = "UPDATE janitor_runs SET finished_at = now(), outcome = $2 WHERE id = $1"

_RUNS = """
SELECT id, holder, started_at, finished_at, outcome, now() AS now FROM janitor_runs
 WHERE $1::uuid IS NULL OR id = $1
 ORDER BY id DESC LIMIT $2
"""

_TASKS = """
SELECT run_id, task, started_at, finished_at, outcome, done, found, error FROM janitor_tasks
 WHERE run_id = ANY ($1::uuid[])
 ORDER BY started_at, task
"""

# Of each task its latest run, which may have been longer ago than the latest run of all.
_LATEST = """
SELECT task, started_at, finished_at, outcome, found
  FROM (SELECT task, started_at, finished_at, outcome, found,
               row_number() OVER (PARTITION BY task ORDER BY run_id DESC) AS age
          FROM janitor_tasks
         WHERE run_id = ANY (ARRAY(SELECT id FROM janitor_runs ORDER BY id DESC LIMIT 10))) AS recent
 WHERE age = 1
 ORDER BY task
"""

_LAST_RUN = "SELECT id, holder, started_at, finished_at, outcome FROM janitor_runs ORDER BY id DESC LIMIT 1"

# A run whose time was up did what it could, and the next one goes on. Runs that died or failed are few, so both
# look-ups by the primary key end soon.
_LAST_SUCCESS = """
SELECT finished_at FROM janitor_runs WHERE outcome IN ('done', 'unfinished') ORDER BY id DESC LIMIT 1
"""

_LAST_FINISHED = """
SELECT extract(epoch FROM finished_at - started_at)::float8 FROM janitor_runs
 WHERE outcome IN ('done', 'unfinished', 'failed') ORDER BY id DESC LIMIT 1
"""

_OLD_RUNS = """
SELECT id FROM janitor_runs
 WHERE started_at <= now() - $2::float8 * interval '1 day' AND outcome <> 'running' AND id > $1
 ORDER BY id LIMIT $3
"""

_FORGET_RUNS = """
WITH tasks AS (
    DELETE FROM janitor_tasks WHERE run_id = ANY ($1::uuid[])
), removed AS (
    DELETE FROM janitor_runs WHERE id = ANY ($1::uuid[]) RETURNING 1
)
SELECT count(*) FROM removed
"""

_TOTALS = "SELECT task, figure, total FROM janitor_totals ORDER BY task, figure"


@dataclass(frozen=True, slots=True)
class TaskRecord:
    task: str
    started_at: datetime
    finished_at: datetime | None
    outcome: TaskOutcome
    done: dict[str, int]
    found: dict[str, float]
    error: str | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    id: uuid.UUID
    holder: str
    started_at: datetime
    finished_at: datetime | None
    outcome: TaskOutcome
    tasks: list[TaskRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Figures:
    """What metrics are made of: counters that only grow, and gauges of the latest look."""

    started_at: datetime | None
    finished_at: datetime | None
    outcome: TaskOutcome | None
    """Of the latest run; None before the first."""
    succeeded_at: datetime | None
    """When a run last ended without a failed task, as far as runs are kept."""
    took: float | None
    """Seconds that the latest finished run took."""
    totals: dict[tuple[str, str], int]
    """By task and figure: everything that was ever done."""
    found: dict[tuple[str, str], float]
    """By task and figure: as the task's latest run found it."""
    outcomes: dict[str, TaskOutcome]
    """Of each task's latest run."""


async def begin(connection: Connection, holder: str) -> uuid.UUID:
    run_id = new_id()
    await connection.execute(_BEGIN, run_id, holder)
    return run_id


async def begin_task(connection: Connection, run_id: uuid.UUID, task: str) -> None:
    await connection.execute(_BEGIN_TASK, run_id, task)


async def note(
    connection: Connection,
    run_id: uuid.UUID,
    task: str,
    *,
    done: Mapping[str, int],
    found: Mapping[str, float],
    added: Mapping[str, int],
) -> None:
    """A task's numbers so far, and what the latest batch added to them."""
    await connection.execute(
        _NOTE, run_id, task, json.dumps(dict(done)), json.dumps(dict(found)), list(added), list(added.values())
    )


async def end_task(
    connection: Connection, run_id: uuid.UUID, task: str, outcome: TaskOutcome, error: str | None = None
) -> None:
    await connection.execute(_END_TASK, run_id, task, outcome.value, error)


async def end(connection: Connection, run_id: uuid.UUID, outcome: TaskOutcome) -> None:
    await connection.execute(_END, run_id, outcome.value)


async def runs(
    connection: Connection, *, limit: int = 20, run_id: uuid.UUID | None = None
) -> tuple[list[RunRecord], Any]:
    """The latest runs with their tasks, newest first, and the database's time."""
    rows = await connection.fetch(_RUNS, run_id, limit)
    found = {
        row["id"]: RunRecord(
            row["id"], row["holder"], row["started_at"], row["finished_at"], TaskOutcome(row["outcome"])
        )
        for row in rows
    }
    for row in await connection.fetch(_TASKS, list(found)):
        found[row["run_id"]].tasks.append(
            TaskRecord(
                row["task"],
                row["started_at"],
                row["finished_at"],
                TaskOutcome(row["outcome"]),
                json.loads(row["done"]),
                json.loads(row["found"]),
                row["error"],
            )
        )
    return list(found.values()), rows[0]["now"] if rows else None


async def figures(connection: Connection) -> Figures:
    """The latest figures, for a metrics endpoint: a few rows by primary key."""
    last = await connection.fetchrow(_LAST_RUN)
    latest = await connection.fetch(_LATEST)
    return Figures(
        started_at=last["started_at"] if last else None,
        finished_at=last["finished_at"] if last else None,
        outcome=TaskOutcome(last["outcome"]) if last else None,
        succeeded_at=await connection.fetchval(_LAST_SUCCESS),
        took=await connection.fetchval(_LAST_FINISHED),
        totals={(row["task"], row["figure"]): row["total"] for row in await connection.fetch(_TOTALS)},
        found={(row["task"], name): value for row in latest for name, value in json.loads(row["found"]).items()},
        outcomes={row["task"]: TaskOutcome(row["outcome"]) for row in latest},
    )


async def old_runs(connection: Connection, after: uuid.UUID, days: float, limit: int) -> list[uuid.UUID]:
    """Runs that are so many days old, in the order of their ids."""
    return [row["id"] for row in await connection.fetch(_OLD_RUNS, after, days, limit)]


async def forget_runs(connection: Connection, run_ids: Sequence[uuid.UUID]) -> int:
    """Remove runs with their tasks; what they did stays in the totals."""
    return int(await connection.fetchval(_FORGET_RUNS, run_ids))
