"""`waybill jobs retry`, `prioritise` and `cancel`: stepping in, job by job."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.human_units import counted
from waybill.console.options import AsJson, seconds
from waybill.console.terminal import remarks
from waybill.db import Database
from waybill.errors import Conflict
from waybill_cli.job_actions import Outcome, for_each, tell
from waybill_cli.job_ids import JobArguments
from waybill_cli.wait import follow
from waybill_engine import State, control


def retry(jobs: JobArguments, as_json: AsJson = False) -> None:
    """Queue failed, dead or cancelled jobs again.

    They get all their attempts back. ID is a job's id, or enough of its beginning to tell it from others.
    """

    async def act(database: Database) -> list[Outcome]:
        async def one(job_id: uuid.UUID) -> State:
            async with database.hot() as connection:
                return await control.retry(connection, job_id)

        return await for_each(database, jobs, one)

    tell(with_database(act), say_retried, as_json=as_json)


def say_retried(outcome: Outcome) -> Text:
    if outcome.state is State.SCHEDULED:
        return Text(f"{outcome.id} waits for its active children again")
    return Text(f"{outcome.id} queued again")


def prioritise(
    jobs: JobArguments,
    priority: Annotated[
        int, typer.Option("--to", metavar="N", min=-32768, max=32767, help="Higher runs first; 0 is the default.")
    ],
    as_json: AsJson = False,
) -> None:
    """Give waiting jobs another priority.

    ID is a job's id, or enough of its beginning to tell it from others.
    """

    async def act(database: Database) -> list[Outcome]:
        async def one(job_id: uuid.UUID) -> State:
            async with database.hot() as connection:
                return await control.prioritise(connection, job_id, priority)

        return await for_each(database, jobs, one)

    tell(with_database(act), lambda outcome: Text(f"{outcome.id} has priority {priority} from now on"), as_json=as_json)


def cancel(
    jobs: JobArguments,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; it stays in the job's history.")
    ] = "Cancelled by an operator",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until running jobs have stopped.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", parser=seconds, metavar="DURATION", help="Wait no longer than this."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Cancel waiting jobs, ask running ones to stop. With a parent goes its whole family.

    ID is a job's id, or enough of its beginning to tell it from others.
    """
    if timeout is not None and not wait:
        raise typer.BadParameter("goes with --wait", param_hint="--timeout")

    async def act(database: Database) -> list[Outcome]:
        below: dict[uuid.UUID | None, dict[str, Any]] = {}

        async def one(job_id: uuid.UUID) -> State:
            async with database.hot() as connection:
                result = await control.cancel(connection, job_id, reason)
            below[job_id] = {"below": result.below, "stopping_below": sorted(result.stopping - {job_id})}
            return result.state

        outcomes = [replace(each, family=below.get(each.id, {})) for each in await for_each(database, jobs, one)]
        if wait:
            # All have been asked before the first is waited for: they stop side by side.
            outcomes = [await _ended(database, each, timeout) for each in outcomes]
        return outcomes

    tell(with_database(act), _say_cancelled, as_json=as_json)


async def _ended(database: Database, outcome: Outcome, timeout: float | None) -> Outcome:
    for below in outcome.family.get("stopping_below", ()):
        with remarks().status(f"Waiting for {below}, below {outcome.id}, to stop…"):
            job = await follow(database, below, within=timeout, on_change=lambda _: None)
        if not State(job.state).final:
            slow = Conflict(f"Job {below}, below {outcome.id}, has been asked to stop, but has not stopped yet.")
            return replace(outcome, error=slow)
    if outcome.id is None or outcome.state is not State.RUNNING:
        return outcome
    with remarks().status(f"Waiting for {outcome.id} to stop…"):
        job = await follow(database, outcome.id, within=timeout, on_change=lambda _: None)
    state, error = State(job.state), None
    if not state.final:
        error = Conflict(f"Job {job.id} has been asked to stop, but has not stopped yet; it is still {state}.")
    elif state is not State.CANCELLED:
        error = Conflict(f"Job {job.id} ended before it could be stopped: it is {state}.")
    return replace(outcome, state=state, error=error)


def _say_cancelled(outcome: Outcome) -> Text:
    said = "is running; its worker has been asked to stop it" if outcome.state is State.RUNNING else "cancelled"
    if below := outcome.family.get("below"):
        said += f", with {counted(below, 'job')} below it"
    if stopping := outcome.family.get("stopping_below"):
        said += f"; {counted(len(stopping), 'running job')} below it asked to stop"
    return Text(f"{outcome.id} {said}")
