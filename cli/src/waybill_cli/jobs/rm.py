"""`waybill jobs rm`: deletes ended jobs, by their ids or by a filter."""

from __future__ import annotations

from rich.text import Text

from waybill.console.options import AsJson, Kind, Tenant
from waybill_cli.job_actions import change_each
from waybill_cli.job_ids import OptionalJobArguments
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
from waybill_engine import State, bulk, control
from waybill_engine.job_filter import Action


def rm(
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
    """Delete ended jobs and their history.

    ID is a job's id, or a beginning of it that no other job shares. Instead of ids, options choose the jobs; they are
    counted first, and you are asked. Pinned jobs and jobs of tenants under legal hold stay. The janitor's next run
    removes the files of deleted jobs.
    """
    ended = [each for each in State if each.final]
    wanted = filter_of(Action.DELETE, state, kind, tenant, queue, error_code, unique, older_than, unless_said=ended)
    if not change_chosen(Action.DELETE, jobs, wanted, bulk.delete, yes=yes, dry_run=dry_run, as_json=as_json):
        change_each(jobs or [], control.delete, lambda result: Text(f"{result.id} deleted"), as_json=as_json)
