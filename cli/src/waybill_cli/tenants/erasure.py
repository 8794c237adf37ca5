"""`waybill tenant erase`: everything a tenant has here, gone for good."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Annotated

import typer

from waybill.console.database import find_settings, with_database
from waybill.console.exits import ExitCode
from waybill.console.human_units import counted, duration
from waybill.console.options import AsJson, seconds
from waybill.console.terminal import print_json, print_line, remark
from waybill.db import Database
from waybill.pipelines import brought
from waybill.storage import service_storage
from waybill_cli.tenants.fair_share import Name
from waybill_engine import erasure
from waybill_engine.erasure import Erasure

_AT_A_TIME = 5.0


def erase(
    tenant: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[
        float,
        typer.Option("--wait", parser=seconds, metavar="DURATION", help="How long to wait for what still runs."),
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Remove a tenant's documents, results, jobs, keys and settings, for good.

    Interrupted, it goes on when it is called again, or with the next run of the janitor. Pinned jobs go too; a tenant
    under legal hold is refused.
    """
    if not yes and not _agreed(tenant):
        remark("Nothing was removed. --yes removes without asking.")
        raise typer.Exit(ExitCode.REFUSED)
    settings, _ = find_settings()
    erasers = brought("erasure")

    async def work(database: Database) -> Erasure:
        storage = service_storage(settings, database)
        async with database.hot() as connection:
            erasure_id: uuid.UUID = await erasure.request(connection, tenant)
        until = time.monotonic() + wait
        while True:
            done = await erasure.erase(database, storage, erasers, erasure_id, within=_AT_A_TIME)
            if done.finished_at is not None or time.monotonic() > until:
                return done
            remark(f"{counted(done.jobs, 'job')} and {counted(done.files, 'file')} removed so far …")
            await asyncio.sleep(0.5)

    done = with_database(work)
    finished = done.finished_at is not None
    if as_json:
        print_json({"tenant": tenant, "finished": finished, "jobs": done.jobs, "files": done.files})
    elif done.finished_at is not None:
        took = duration((done.finished_at - done.requested_at).total_seconds())
        print_line(
            f"Tenant {tenant} is erased: {counted(done.jobs, 'job')} and {counted(done.files, 'file')}, within {took}."
        )
    else:
        print_line(f"Tenant {tenant} is nearly erased; some of its jobs still run. The janitor goes on with it.")
    if not finished:
        raise typer.Exit(ExitCode.REFUSED)


def _agreed(tenant: str) -> bool:
    try:
        typed = typer.prompt(f"This removes everything of tenant {tenant}. Type its name to go on", err=True)
    except typer.Abort:  # nobody there to ask
        return False
    return bool(typed == tenant)
