"""`waybill jobs rm`: deletes ended jobs, by their ids or by a filter."""

from __future__ import annotations

import uuid

from rich.text import Text

from waybill.console.database import with_database
from waybill.console.options import AsJson, Kind, Tenant
from waybill.db import Database
from waybill_cli.job_actions import ActionResult, for_each, print_results
from waybill_cli.job_ids import OptionalJobArguments
from waybill_cli.jobs.by_filter import (
    DryRun,
    ErrorCode,
    OlderThan,
    Queue,
    States,
    UniqueKey,
    Yes,
    apply,
    either,
    filter_of,
    refuse_without_filter,
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
    either(jobs, wanted)
    if wanted is not None:
        apply(
            Action.DELETE,
            wanted,
            lambda database: bulk.delete(database.hot, wanted),
            yes=yes,
            dry_run=dry_run,
            as_json=as_json,
        )
        return
    refuse_without_filter(dry_run=dry_run, yes=yes)

    async def act(database: Database) -> list[ActionResult]:
        async def one(job_id: uuid.UUID) -> State:
            async with database.hot() as connection:
                return await control.delete(connection, job_id)

        return await for_each(database, jobs or [], one)

    print_results(with_database(act), lambda result: Text(f"{result.id} deleted"), as_json=as_json)
