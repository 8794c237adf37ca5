"""`waybill jobs purge`: deletes finished jobs of a certain age, after confirmation."""

from __future__ import annotations

from typing import Annotated

import typer

from waybill.console.options import AsJson, Kind, Tenant, age
from waybill_cli.jobs.by_filter import DryRun, States, Yes, apply, filter_of
from waybill_engine import State, bulk
from waybill_engine.job_filter import Action

_UNLESS_SAID = [State.SUCCEEDED, State.CANCELLED]
"""Failed jobs are only deleted if they are named, because people should look at them first."""


def purge(
    older_than: Annotated[
        float,
        typer.Option("--older-than", parser=age, metavar="DURATION", help="How long ago they ended: 12h, 30d, 2w."),
    ],
    state: States = None,
    kind: Kind = None,
    tenant: Tenant = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete finished jobs and their history.

    It deletes succeeded and cancelled jobs unless --state says otherwise, because people should look at failed ones.
    Pinned jobs and jobs of tenants under legal hold stay. The janitor's next run removes the files of deleted jobs.
    """
    wanted = filter_of(Action.DELETE, state, kind, tenant, None, None, None, older_than, unless_said=_UNLESS_SAID)
    assert wanted is not None, "an age is a filter"  # noqa: S101
    apply(
        Action.DELETE,
        wanted,
        lambda database: bulk.delete(database.hot, wanted),
        yes=yes,
        dry_run=dry_run,
        as_json=as_json,
    )
