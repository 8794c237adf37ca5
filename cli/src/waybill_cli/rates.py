"""`waybill rates`: limits on how many jobs of a tenant or a kind start in some time, in the whole cluster."""

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
from waybill_engine import rates
from waybill_engine.rules import Pace, Rate

app = typer.Typer(help="Limit how often jobs start: ls, set, rm.", no_args_is_help=True, rich_markup_mode=None)

Tenant = Annotated[str | None, typer.Option("--tenant", metavar="TENANT", help="Jobs of this tenant.")]
Kind = Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Jobs of this kind.")]


@app.command()
def ls(as_json: AsJson = False) -> None:
    """List the rates, and how many jobs each would let start now."""

    async def read(database: Database) -> tuple[list[Rate], dict[Rate, rates.Opening]]:
        async with database.hot() as connection:
            found = await rates.list_rates(connection)
            return found, await rates.look_at_rates(connection, found)

    found, openings = with_database(read)
    if as_json:
        print_json({"rates": [{**_record(rate), "open_for": _room(rate, openings)} for rate in found]})
    elif not found:
        remark("There are no rates, so jobs start as soon as a worker has a free slot. Set one with: waybill rates set")
    else:
        columns = [Column("TENANT", most=40), Column("KIND"), *(Column(name, right=True) for name in _NUMBERS)]
        print_table(columns, [_row(rate, _room(rate, openings)) for rate in found])


_NUMBERS = ("MOST", "SECONDS", "BURST", "OPEN FOR")


def _room(rate: Rate, openings: dict[Rate, rates.Opening]) -> int:
    return openings[rate].room if rate in openings else rate.burst  # lifted a moment ago


def _row(rate: Rate, room: int) -> list[Text]:
    return [
        styled(rate.tenant or "any", "" if rate.tenant else "dim"),
        styled(rate.kind or "any", "" if rate.kind else "dim"),
        Text(f"{rate.most:,}"),
        Text(f"{rate.seconds:,g}"),
        Text(f"{rate.burst:,}"),
        Text(f"{room:,}", "" if room else "yellow"),
    ]


def _record(rate: Rate) -> dict[str, object]:
    return {
        "tenant": rate.tenant,
        "kind": rate.kind,
        "most": rate.most,
        "seconds": rate.seconds,
        "burst": rate.burst,
    }


@app.command("set")
def set_rate(
    most: Annotated[int, typer.Argument(metavar="N", min=1, hidden=True)],
    seconds: Annotated[float, typer.Option("--per", metavar="SECONDS", help="The time in which they may start.")] = 1.0,
    burst: Annotated[
        int | None,
        typer.Option(
            "--burst", metavar="B", min=1, help="How many of them may start at once. A tenth of N by default."
        ),
    ] = None,
    tenant: Tenant = None,
    kind: Kind = None,
    as_json: AsJson = False,
) -> None:
    """Let at most N jobs start in a second, or in the time given by --per.

    The limit is for a tenant, for a kind, or for a kind of a tenant. It is never exceeded, whenever you start to count.
    """

    async def write(database: Database) -> Rate:
        async with database.hot() as connection:
            return await rates.set_rate(connection, Pace(most, seconds, burst), tenant=tenant, kind=kind)

    rate = with_database(write)
    if as_json:
        print_json(_record(rate))
    else:
        jobs = "job" if rate.most == 1 else "jobs"
        within = "a second" if rate.seconds == 1 else f"{rate.seconds:,g} seconds"
        print_line(f"At most {rate.most:,} {jobs} {_of(tenant, kind)} start in {within} from now on.")


@app.command()
def rm(tenant: Tenant = None, kind: Kind = None, as_json: AsJson = False) -> None:
    """Remove a rate."""

    async def lift(database: Database) -> bool:
        async with database.hot() as connection:
            return await rates.remove_rate(connection, tenant=tenant, kind=kind)

    if not with_database(lift):
        raise NotFound(f"There is no rate of jobs {_of(tenant, kind)}. `waybill rates ls` lists what there is.")
    if as_json:
        print_json({"tenant": tenant, "kind": kind, "most": None})
    else:
        print_line(f"Jobs {_of(tenant, kind)} start as often as they can.")


def _of(tenant: str | None, kind: str | None) -> str:
    return " ".join(
        part for part in (f"of kind {kind}" if kind else "", f"of tenant {tenant}" if tenant else "") if part
    )
