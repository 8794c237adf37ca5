"""Applies an action to several jobs. Each succeeds or fails on its own, and every result is printed."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.exits import ExitCode
from waybill.console.terminal import complain, print_json, print_line
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import DatabaseUnavailable, WaybillError
from waybill_cli.job_ids import JobRef
from waybill_engine import State

Action = Callable[[uuid.UUID], Awaitable[State]]


@dataclass(frozen=True, slots=True)
class ActionResult:
    typed: str
    id: uuid.UUID | None
    state: State | None
    """The job's state afterwards; None if the action failed."""
    error: WaybillError | None = None
    family: Mapping[str, Any] = field(default_factory=dict)
    """What became of its children, for commands that change them too."""

    def record(self) -> dict[str, Any]:
        error = {"code": self.error.code, "message": self.error.message} if self.error else None
        return {"given": self.typed, "id": self.id, "state": self.state, "error": error, **self.family}


async def for_each(database: Database, refs: Sequence[JobRef], act: Action) -> list[ActionResult]:
    """Apply the action to every job once, in the given order."""
    results: dict[object, ActionResult] = {}
    for ref in refs:
        job_id: uuid.UUID | None = None
        try:
            async with database.transaction() as session:
                job_id = await ref.resolve(session)
            if job_id not in results:
                results[job_id] = ActionResult(ref.typed, job_id, await act(job_id))
        except DatabaseUnavailable:
            raise
        except WaybillError as error:
            results[job_id or ref] = ActionResult(ref.typed, job_id, None, error)
    return list(results.values())


def change_each(
    refs: Sequence[JobRef],
    change: Callable[[Connection, uuid.UUID], Awaitable[State]],
    say: Callable[[ActionResult], Text],
    *,
    as_json: bool,
) -> None:
    """Change every job with one hot statement, and print what became of each."""

    async def act(database: Database) -> list[ActionResult]:
        async def one(job_id: uuid.UUID) -> State:
            async with database.hot() as connection:
                return await change(connection, job_id)

        return await for_each(database, refs, one)

    print_results(with_database(act), say, as_json=as_json)


def print_results(results: Sequence[ActionResult], say: Callable[[ActionResult], Text], *, as_json: bool) -> None:
    """Print the results. Exits with 1 if any of them is an error."""
    if as_json:
        print_json({"results": [each.record() for each in results]})
    for each in results:
        if each.error is not None:
            complain(each.error.message)
        elif not as_json:
            print_line(say(each))
    if any(each.error for each in results):
        raise typer.Exit(ExitCode.REFUSED)
