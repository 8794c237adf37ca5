"""`waybill jobs ls`: lists jobs, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from waybill.console.database import with_database
from waybill.console.human_units import ago
from waybill.console.options import AsJson, Kind, Limit, Tenant
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, remark, styled
from waybill.db import Database
from waybill_cli.job_ids import JobRef, job_ref
from waybill_cli.job_view import note, state_text, tries
from waybill_cli.records import job_record
from waybill_engine import Job, State, queries

_COLUMNS = (
    Column("ID"),
    Column("KIND", drop=1),
    Column("STATE"),
    Column("TENANT", drop=4, most=24),
    Column("QUEUE", drop=6),
    Column("CHARGED", drop=5),
    Column("CREATED", drop=2),
    Column("NOTE", drop=3, least=16),
)

Before = Annotated[
    JobRef | None,
    typer.Option("--before", parser=job_ref, metavar="ID", help="Only jobs older than this one."),
]


def ls(
    state: Annotated[
        list[State] | None,
        typer.Option("--state", metavar="STATE", help=f"Only jobs in this state: {', '.join(State)}. May be repeated."),
    ] = None,
    kind: Kind = None,
    queue: Annotated[str | None, typer.Option("--queue", metavar="QUEUE", help="Only jobs of this queue.")] = None,
    tenant: Tenant = None,
    parent: Annotated[
        JobRef | None, typer.Option("--parent", parser=job_ref, metavar="ID", help="Only children of this job.")
    ] = None,
    limit: Limit = 50,
    before: Before = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    jobs, more, now = read_page(
        states=state or (), kind=kind, queue=queue, tenant=tenant, parent=parent, limit=limit, before=before
    )
    if as_json:
        print_page(jobs, more)
    elif not jobs:
        filtered = state or kind or queue or tenant or parent or before
        remark(
            "No jobs match. `waybill queue stats` shows which jobs there are."
            if filtered
            else "No jobs yet. `waybill selftest` creates one and follows it."
        )
    else:
        _print(jobs, now)
        remark_more(jobs, more)


def read_page(
    *,
    states: Sequence[State],
    kind: str | None,
    tenant: str | None,
    limit: int,
    before: JobRef | None,
    queue: str | None = None,
    parent: JobRef | None = None,
) -> tuple[Sequence[Job], bool, datetime]:
    """The jobs, whether there are more, and when they were read."""

    async def read(database: Database) -> tuple[Sequence[Job], bool, datetime]:
        async with database.transaction() as session:
            jobs = await queries.list_jobs(
                session,
                states=states,
                kind=kind,
                queue=queue,
                tenant=tenant,
                parent_id=await parent.resolve(session) if parent else None,
                before=before.first if before else None,
                limit=limit + 1,
            )
            return jobs[:limit], len(jobs) > limit, await queries.database_time(session)

    return with_database(read)


def print_page(jobs: Sequence[Job], more: bool) -> None:
    """Print a list of jobs as JSON. `next_before` is the value of `--before` that continues it."""
    print_json({"jobs": [job_record(job) for job in jobs], "next_before": jobs[-1].id if more else None})


def remark_more(jobs: Sequence[Job], more: bool) -> None:
    if more:
        remark(f"There are more; add --before {jobs[-1].id} for older ones.")


def _print(jobs: Sequence[Job], now: datetime) -> None:
    print_table(
        _COLUMNS,
        [
            (
                styled(job.id),
                styled(job.kind),
                state_text(job.state),
                styled(job.tenant),
                styled(job.queue),
                styled(tries(job)),
                styled(ago(job.created_at, now)),
                styled(note(job, now), "dim"),
            )
            for job in jobs
        ],
    )
