"""`waybill caps`: limits on how many jobs of a tenant or a kind run at once in the whole cluster."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill.errors import NotFound
from waybill_engine import caps
from waybill_engine.rules import Cap

app = typer.Typer(help="Limit how many jobs run at once: ls, set, rm.", no_args_is_help=True, rich_markup_mode=None)

Tenant = Annotated[str | None, typer.Option("--tenant", metavar="TENANT", help="Jobs of this tenant.")]
Kind = Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Jobs of this kind.")]


@app.command()
def ls(as_json: AsJson = False) -> None:
    """List the caps, and how many jobs run under each."""

    async def read(database: Database) -> tuple[list[Cap], dict[int, int]]:
        async with database.hot() as connection:
            found = await caps.list_caps(connection)
            return found, await caps.count_running(connection, found)

    found, running = with_database(read)
    if as_json:
        print_json({"caps": [{**_record(cap), "running": running.get(cap.id, 0)} for cap in found]})
    elif not found:
        remark("There are no caps, so workers fill all their slots. Set one with: waybill caps set")
    else:
        columns = [Column("TENANT", most=40), Column("KIND"), Column("MOST", right=True), Column("RUNNING", right=True)]
        print_table(columns, [_row(cap, running.get(cap.id, 0)) for cap in found])


def _row(cap: Cap, running: int) -> list[Text]:
    return [
        styled(cap.tenant or "any", "" if cap.tenant else "dim"),
        styled(cap.kind or "any", "" if cap.kind else "dim"),
        Text(f"{cap.most:,}"),
        Text(f"{running:,}", "yellow" if running >= cap.most else ""),
    ]


def _record(cap: Cap) -> dict[str, object]:
    return {"tenant": cap.tenant, "kind": cap.kind, "most": cap.most}


@app.command("set")
def set_cap(
    most: Annotated[int, typer.Argument(metavar="N", min=0, hidden=True)],
    tenant: Tenant = None,
    kind: Kind = None,
    as_json: AsJson = False,
) -> None:
    """Let at most N jobs run at once.

    The limit is for a tenant, for a kind, or for a kind of a tenant. 0 stops them all. Jobs that run already continue.
    """

    async def write(database: Database) -> Cap:
        async with database.hot() as connection:
            return await caps.set_cap(connection, most, tenant=tenant, kind=kind)

    cap = with_database(write)
    if as_json:
        print_json(_record(cap))
    else:
        print_line(f"At most {cap.most:,} {_jobs(cap.most)} {_of(tenant, kind)} run at once from now on.")


@app.command()
def rm(tenant: Tenant = None, kind: Kind = None, as_json: AsJson = False) -> None:
    """Remove a cap."""

    async def lift(database: Database) -> bool:
        async with database.hot() as connection:
            return await caps.remove_cap(connection, tenant=tenant, kind=kind)

    if not with_database(lift):
        raise NotFound(f"There is no cap on jobs {_of(tenant, kind)}. `waybill caps ls` lists what there is.")
    if as_json:
        print_json({"tenant": tenant, "kind": kind, "most": None})
    else:
        print_line(f"Jobs {_of(tenant, kind)} are no longer capped.")


def _jobs(count: int) -> str:
    return "job" if count == 1 else "jobs"


def _of(tenant: str | None, kind: str | None) -> str:
    return " ".join(
        part for part in (f"of kind {kind}" if kind else "", f"of tenant {tenant}" if tenant else "") if part
    )
