"""`waybill dlq`: dead letters, the jobs that used up their retries or crashed their workers."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer

from waybill.console.database import with_database
from waybill.console.human_units import ago, counted
from waybill.console.options import AsJson, Kind, Limit, Tenant
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill.errors import Conflict
from waybill_cli.job_actions import ActionResult, for_each, print_results
from waybill_cli.job_ids import JobRef, OptionalJobArguments
from waybill_cli.job_view import error_text, tries
from waybill_cli.jobs.by_filter import report_left
from waybill_cli.jobs.control import retried_text
from waybill_cli.jobs.ls import Before, print_page, read_page, remark_more
from waybill_engine import State, bulk, control, queries
from waybill_engine.job_filter import JobFilter

app = typer.Typer(help="Operate the dead-letter queue: ls, retry.", no_args_is_help=True, rich_markup_mode=None)

_COLUMNS = (
    Column("ID"),
    Column("KIND", drop=2),
    Column("TENANT", drop=4, most=24),
    Column("CHARGED", drop=5),
    Column("ENDED", drop=3),
    Column("ERROR", drop=1, least=16),
)


@app.command("ls")
def ls(
    kind: Kind = None, tenant: Tenant = None, limit: Limit = 50, before: Before = None, as_json: AsJson = False
) -> None:
    """List dead letters, newest first."""
    jobs, more, now = read_page(states=[State.DEAD_LETTER], kind=kind, tenant=tenant, limit=limit, before=before)
    if as_json:
        print_page(jobs, more)
    elif not jobs:
        remark("No dead letters match." if kind or tenant or before else "No dead letters.")
    else:
        rows = [
            (
                styled(job.id),
                styled(job.kind),
                styled(job.tenant),
                styled(tries(job)),
                styled(ago(job.finished_at, now)),
                styled(error_text(job), "red"),
            )
            for job in jobs
        ]
        print_table(_COLUMNS, rows)
        remark_more(jobs, more)
        remark("Retry one with `waybill dlq retry ID`, all with `waybill dlq retry --all`.")


@app.command("retry")
def retry(
    jobs: OptionalJobArguments = None,
    everything: Annotated[bool, typer.Option("--all", help="Retry every dead letter.")] = False,
    kind: Kind = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Queue dead letters again.

    They get all their attempts back. ID is a job's id, or a beginning of it that no other job shares.
    """
    if bool(jobs) == everything:
        raise typer.BadParameter("name the jobs to retry, or use --all", param_hint="ID or --all")
    if jobs:
        if kind or tenant:
            raise typer.BadParameter("only works with --all", param_hint="--kind" if kind else "--tenant")
        _retry_named(jobs, as_json)
    else:
        _retry_all(kind, tenant, as_json)


def _retry_named(jobs: list[JobRef], as_json: bool) -> None:
    async def act(database: Database) -> list[ActionResult]:
        async def one(job_id: uuid.UUID) -> State:
            async with database.transaction() as session:
                state = (await queries.get_job(session, job_id)).state
            if state != State.DEAD_LETTER:
                raise Conflict(f"Job {job_id} is {state}, not a dead letter. See: waybill jobs retry --help")
            async with database.hot() as connection:
                return await control.retry(connection, job_id)

        return await for_each(database, jobs, one)

    print_results(with_database(act), retried_text, as_json=as_json)


def _retry_all(kind: str | None, tenant: str | None, as_json: bool) -> None:
    retried: list[uuid.UUID] = []
    left: list[uuid.UUID] = []

    async def act(database: Database) -> None:
        async for step in bulk.retry(database.hot, JobFilter([State.DEAD_LETTER], kind, tenant)):
            retried.extend(step.done)
            left.extend(step.left)

    with_database(act)
    if as_json:
        print_json({"retried": retried, "left": left})
    elif not retried and not left:
        remark("No dead letters match." if kind or tenant else "No dead letters. Nothing to retry.")
    else:
        print_line(f"Queued {counted(len(retried), 'job')} again.")
    report_left(left)
