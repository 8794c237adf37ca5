"""`waybill jobs retry`, `prioritise` and `cancel`: change jobs by their ids or, but for priorities, by a filter."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.human_units import counted
from waybill.console.options import AsJson, Kind, Tenant, seconds
from waybill.console.terminal import remarks
from waybill.db import Database
from waybill.errors import Conflict
from waybill_cli.job_actions import ActionResult, change_each, for_each, print_results
from waybill_cli.job_ids import JobArguments, OptionalJobArguments
from waybill_cli.jobs.by_filter import (
    DryRun,
    ErrorCode,
    OlderThan,
    Queue,
    States,
    UniqueKey,
    Yes,
    change_chosen,
    filter_of,
)
from waybill_cli.wait import follow
from waybill_engine import State, bulk, control
from waybill_engine.job_filter import Action

_RETRIED_UNLESS_SAID = [State.FAILED, State.DEAD_LETTER]
"""Somebody wanted cancelled jobs not to run, so a filter has to name them."""


def retry(
    jobs: OptionalJobArguments = None,
    state: States = None,
    kind: Kind = None,
    tenant: Tenant = None,
    queue: Queue = None,
    error_code: ErrorCode = None,
    unique: UniqueKey = None,
    older_than: OlderThan = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Queue failed, dead-lettered or cancelled jobs again.

    They get all their attempts back. ID is a job's id, or a beginning of it that no other job shares. Instead of ids,
    options choose the jobs; they are counted first, and you are asked. Options choose failed jobs and dead letters
    unless --state says otherwise.
    """
    wanted = filter_of(
        Action.RETRY, state, kind, tenant, queue, error_code, unique, older_than, unless_said=_RETRIED_UNLESS_SAID
    )
    if not change_chosen(Action.RETRY, jobs, wanted, bulk.retry, yes=yes, dry_run=dry_run, as_json=as_json):
        change_each(jobs or [], control.retry, retried_text, as_json=as_json)


def retried_text(result: ActionResult) -> Text:
    if result.state is State.SCHEDULED:
        return Text(f"{result.id} waits for its active children again")
    return Text(f"{result.id} queued again")


def prioritise(
    jobs: JobArguments,
    priority: Annotated[
        int, typer.Option("--to", metavar="N", min=-32768, max=32767, help="Higher runs first; 0 is the default.")
    ],
    as_json: AsJson = False,
) -> None:
    """Change the priority of waiting jobs.

    ID is a job's id, or a beginning of it that no other job shares.
    """
    change_each(
        jobs,
        partial(control.prioritise, priority=priority),
        lambda result: Text(f"{result.id} has priority {priority} now"),
        as_json=as_json,
    )


def cancel(
    jobs: OptionalJobArguments = None,
    state: States = None,
    kind: Kind = None,
    tenant: Tenant = None,
    queue: Queue = None,
    error_code: ErrorCode = None,
    unique: UniqueKey = None,
    older_than: OlderThan = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason, for the job's history.")
    ] = "Cancelled by an operator",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until running jobs have stopped.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", parser=seconds, metavar="DURATION", help="Wait no longer than this."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Cancel waiting jobs, and ask running ones to stop. A parent's children are cancelled too.

    ID is a job's id, or a beginning of it that no other job shares. Instead of ids, options choose the jobs; they are
    counted first, and you are asked.
    """
    if timeout is not None and not wait:
        raise typer.BadParameter("only works with --wait", param_hint="--timeout")
    active = [each for each in State if not each.final]
    wanted = filter_of(Action.CANCEL, state, kind, tenant, queue, error_code, unique, older_than, unless_said=active)
    if wanted is not None and wait:
        raise typer.BadParameter("only works with ids, not with a filter", param_hint="--wait")
    steps = partial(bulk.cancel, reason=reason)
    if change_chosen(Action.CANCEL, jobs, wanted, steps, yes=yes, dry_run=dry_run, as_json=as_json):
        return

    async def act(database: Database) -> list[ActionResult]:
        below: dict[uuid.UUID | None, dict[str, Any]] = {}

        async def one(job_id: uuid.UUID) -> State:
            async with database.hot() as connection:
                result = await control.cancel(connection, job_id, reason)
            below[job_id] = {"below": result.below, "stopping_below": sorted(result.stopping - {job_id})}
            return result.state

        results = [replace(each, family=below.get(each.id, {})) for each in await for_each(database, jobs or [], one)]
        if wait:
            # We ask all jobs before we wait for the first, so that they stop in parallel.
            results = [await _ended(database, each, timeout) for each in results]
        return results

    print_results(with_database(act), _cancelled_text, as_json=as_json)


async def _ended(database: Database, result: ActionResult, timeout: float | None) -> ActionResult:
    for below in result.family.get("stopping_below", ()):
        with remarks().status(f"Waiting for {below}, below {result.id}, to stop…"):
            job = await follow(database, below, within=timeout, on_change=lambda _: None)
        if not State(job.state).final:
            slow = Conflict(f"Job {below}, below {result.id}, has been asked to stop, but has not stopped yet.")
            return replace(result, error=slow)
    if result.id is None or result.state is not State.RUNNING:
        return result
    with remarks().status(f"Waiting for {result.id} to stop…"):
        job = await follow(database, result.id, within=timeout, on_change=lambda _: None)
    state, error = State(job.state), None
    if not state.final:
        error = Conflict(f"Job {job.id} has been asked to stop, but has not stopped yet; it is still {state}.")
    elif state is not State.CANCELLED:
        error = Conflict(f"Job {job.id} ended before it could be stopped: it is {state}.")
    return replace(result, state=state, error=error)


def _cancelled_text(result: ActionResult) -> Text:
    said = "is running; its worker has been asked to stop it" if result.state is State.RUNNING else "cancelled"
    if below := result.family.get("below"):
        said += f", with {counted(below, 'job')} below it"
    if stopping := result.family.get("stopping_below"):
        said += f"; {counted(len(stopping), 'running job')} below it asked to stop"
    return Text(f"{result.id} {said}")
