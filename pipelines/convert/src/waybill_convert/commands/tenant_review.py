"""`waybill tenant review`: below which confidence a person looks at a tenant's results before anybody gets them."""

from __future__ import annotations

from typing import Annotated

import typer

from waybill.config import load
from waybill.console.database import with_database
from waybill.console.options import AsJson
from waybill.console.tables import print_facts
from waybill.console.terminal import print_json, remark, styled
from waybill.db import Database
from waybill_convert.doubts import EVERY_MAPPING
from waybill_convert.repository import thresholds
from waybill_convert.settings import ConvertSettings


def _confidence(value: str) -> int | None:
    """None for 'default'."""
    if value == "default":
        return None
    if value.isascii() and value.isdigit() and len(value) <= 3 and int(value) <= 100:
        return int(value)
    raise typer.BadParameter(f"{value!r} is neither a confidence from 0 to 100 nor 'default'")


def review(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", hidden=True)],
    below: Annotated[
        str | None,
        typer.Option(
            "--below", metavar="CONFIDENCE", help="From 0 to 100, or 'default' to take it back. 0 means never."
        ),
    ] = None,
    mapping: Annotated[
        str | None, typer.Option("--mapping", metavar="NAME", help="Only for this mapping; otherwise for all others.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show below which confidence a person looks at a tenant's results first, or change it.

    It counts for documents whose conversion starts from then on.
    """
    if mapping is not None and below is None:
        raise typer.BadParameter("--mapping says for which mapping --below is")
    wanted = _confidence(below) if below is not None else None

    async def work(database: Database) -> dict[str, int]:
        async with database.hot() as connection:
            if below is None:
                return await thresholds.of_tenant(connection, tenant)
            return await thresholds.set_threshold(connection, tenant, wanted, mapping=mapping or EVERY_MAPPING)

    found = with_database(work)
    every = found.pop(EVERY_MAPPING, None)
    if as_json:
        print_json({"tenant": tenant, "below": every, "mappings": found})
        return
    rest = "all other mappings" if found else "all mappings"
    print_facts([(name, styled(_shown(its))) for name, its in {**found, rest: every}.items()], indent=0)
    if every is None:
        default = load(ConvertSettings).review_below
        remark(f"'default' is what the mapping says, or else WAYBILL_REVIEW_BELOW, which is {default} here.")


def _shown(below: int | None) -> str:
    return "default" if below is None else f"below {below}" if below else "never"
