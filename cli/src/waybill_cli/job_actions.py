"""Doing one thing to several jobs: each succeeds or is refused for itself, and every outcome is told."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer
from rich.text import Text

from waybill.console.exits import ExitCode
from waybill.console.terminal import complain, print_json, print_line
from waybill.db import Database
from waybill.errors import DatabaseUnavailable, WaybillError
from waybill_cli.job_ids import JobRef
from waybill_engine import State

Action = Callable[[uuid.UUID], Awaitable[State]]


@dataclass(frozen=True, slots=True)
class Outcome:
    typed: str
    id: uuid.UUID | None
    state: State | None
    """The state the job is in now; None if it was refused."""
    error: WaybillError | None = None
    family: Mapping[str, Any] = field(default_factory=dict)
    """What became of the jobs below it; for a command that does something to them."""

    def record(self) -> dict[str, Any]:
        error = {"code": self.error.code, "message": self.error.message} if self.error else None
        return {"given": self.typed, "id": self.id, "state": self.state, "error": error, **self.family}


async def for_each(database: Database, refs: Sequence[JobRef], act: Action) -> list[Outcome]:
    """Act on every job once, in the order given."""
    outcomes: dict[object, Outcome] = {}
    for ref in refs:
        job_id: uuid.UUID | None = None
        try:
            async with database.transaction() as session:
                job_id = await ref.resolve(session)
            if job_id not in outcomes:
                outcomes[job_id] = Outcome(ref.typed, job_id, await act(job_id))
        except DatabaseUnavailable:
            raise
        except WaybillError as error:
            outcomes[job_id or ref] = Outcome(ref.typed, job_id, None, error)
    return list(outcomes.values())


def tell(outcomes: Sequence[Outcome], say: Callable[[Outcome], Text], *, as_json: bool) -> None:
    """Print what came of it; any refusal makes the exit code 1."""
    if as_json:
        print_json({"results": [each.record() for each in outcomes]})
    for each in outcomes:
        if each.error is not None:
            complain(each.error.message)
        elif not as_json:
            print_line(say(each))
    if any(each.error for each in outcomes):
        raise typer.Exit(ExitCode.REFUSED)
