"""`waybill workers`: lists the worker processes and whether they are alive."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.human_units import ago
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, remark, styled
from waybill.db import Database
from waybill_cli.records import worker_record
from waybill_engine import Worker, WorkerState, queries

app = typer.Typer(help="List workers: ls.", no_args_is_help=True, rich_markup_mode=None)

_COLUMNS = (
    Column("NAME"),
    Column("STATE"),
    Column("RUNNING", right=True),
    Column("HOST", drop=4, most=32),
    Column("PID", right=True, drop=5),
    Column("VERSION", drop=6),
    Column("STARTED", drop=2),
    Column("LAST SEEN", drop=1),
    Column("QUEUES", drop=3),
    Column("KINDS", drop=7, least=12),
)
_STYLES = {WorkerState.ACTIVE: "green", WorkerState.DRAINING: "yellow", WorkerState.GONE: "red"}


@app.callback()
def workers() -> None:
    """List workers."""


@app.command("ls")
def ls(
    everyone: Annotated[bool, typer.Option("--all", help="Include workers that stopped or disappeared.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the running workers."""

    async def read(database: Database) -> tuple[Sequence[Worker], Mapping[uuid.UUID, int], datetime]:
        async with database.transaction() as session:
            return (
                await queries.list_workers(session, everyone=everyone),
                await queries.count_running_by_worker(session),
                await queries.database_time(session),
            )

    found, running, now = with_database(read)
    if as_json:
        print_json({"workers": [worker_record(each, running.get(each.id, 0), now) for each in found]})
    elif not found:
        remark(
            "No worker is running. `make up` runs one on this machine."
            + ("" if everyone else " --all shows former ones.")
        )
    else:
        print_table(_COLUMNS, [_row(each, running.get(each.id, 0), now) for each in found])


def _row(worker: Worker, running: int, now: datetime) -> list[Text]:
    return [
        styled(worker.name),
        _state(worker, now),
        styled(f"{running}/{worker.concurrency}"),
        styled(worker.pod_name or worker.host),
        styled(worker.pid),
        styled(worker.version),
        styled(ago(worker.started_at, now)),
        styled(ago(worker.last_seen_at, now)),
        styled(", ".join(worker.queues)),
        styled(", ".join(worker.kinds)),
    ]


def _state(worker: Worker, now: datetime) -> Text:
    """Its state, or `silent` if its lease has expired and nobody has noticed yet."""
    if worker.state in (WorkerState.ACTIVE, WorkerState.DRAINING) and worker.lease_expires_at < now:
        return Text("silent", "bold red")
    return styled(worker.state, _STYLES.get(WorkerState(worker.state), "dim"))
