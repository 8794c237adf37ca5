"""`waybill tenant ls|weight|priority`: how tenants share the workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill_engine import tenants
from waybill_engine.tenants import Standing

Name = Annotated[str, typer.Argument(metavar="TENANT", hidden=True)]


def ls(as_json: AsJson = False) -> None:
    """List the tenants that somebody decided something about."""

    async def read(database: Database) -> Sequence[Standing]:
        async with database.hot() as connection:
            return await tenants.standings(connection)

    found = with_database(read)
    if as_json:
        print_json({"tenants": [_record(one) for one in found]})
    elif not found:
        remark("All tenants share alike: weight 1, no priority above the default.")
    else:
        columns = [
            Column("TENANT", most=40),
            Column("WEIGHT", right=True),
            Column("TOP PRIORITY", right=True),
            Column("HOLD", drop=1),
        ]
        print_table(
            columns,
            [
                [styled(one.tenant), Text(f"{one.weight:g}"), Text(str(one.top_priority)), Text(_held(one), "bold red")]
                for one in found
            ],
        )
        remark("Everybody else has weight 1 and no priority above the default.")


def _record(one: Standing) -> dict[str, object]:
    return {"tenant": one.tenant, "weight": one.weight, "top_priority": one.top_priority, "hold_at": one.hold_at}


def _held(one: Standing) -> str:
    return f"since {one.hold_at:%Y-%m-%d}" if one.hold_at else ""


def weight(
    tenant: Name, value: Annotated[float, typer.Argument(metavar="WEIGHT", hidden=True)], as_json: AsJson = False
) -> None:
    """Give a tenant a bigger or smaller share: weight 2 gets twice the work done of weight 1."""

    async def write(database: Database) -> None:
        async with database.hot() as connection:
            await tenants.weigh(connection, tenant, value)

    with_database(write)
    if as_json:
        print_json({"tenant": tenant, "weight": value})
    else:
        print_line(f"Tenant {tenant} has weight {value:g} from now on.")


def priority(
    tenant: Name,
    top: Annotated[int, typer.Argument(metavar="TOP", min=0, max=32767, hidden=True)],
    as_json: AsJson = False,
) -> None:
    """Let a tenant's jobs have priorities up to TOP; 0 takes that back."""

    async def write(database: Database) -> None:
        async with database.hot() as connection:
            await tenants.grant_priority(connection, tenant, top)

    with_database(write)
    if as_json:
        print_json({"tenant": tenant, "top_priority": top})
    elif top:
        print_line(f"Tenant {tenant} may use priorities up to {top}.")
    else:
        print_line(f"Tenant {tenant} may no longer use priorities above the default.")
