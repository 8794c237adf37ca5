"""`waybill tenant retention|hold|release`: how long a tenant's things are kept, and keeping all of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from waybill import retention as rules
from waybill.console.database import with_database
from waybill.console.options import AsJson
from waybill.console.tables import print_facts
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill.retention import LIMITS, Kept
from waybill_cli.tenants.fair_share import Name

_WORDS = {
    "pdf_ttl_days": "documents",
    "xml_ttl_days": "results",
    "xml_on_download": "results once downloaded",
    "events_ttl_days": "history",
    "jobs_ttl_days": "ended jobs",
}


def _days(value: str | None) -> float | str | None:
    if value is None or value == "default":
        return value
    try:
        return float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither a number of days nor 'default'") from None


def _option(flag: str, what: str) -> Any:
    return typer.Option(flag, metavar="DAYS", help=f"Days to keep {what}, or 'default'.")


def retention(
    tenant: Name,
    documents: Annotated[str | None, _option("--documents", "source documents")] = None,
    results: Annotated[str | None, _option("--results", "results")] = None,
    history: Annotated[str | None, _option("--history", "events of ended jobs")] = None,
    jobs: Annotated[str | None, _option("--jobs", "ended jobs in the list")] = None,
    on_download: Annotated[
        bool | None, typer.Option("--on-download/--not-on-download", help="Remove results once they were downloaded.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how long a tenant's things are kept, or give it limits of its own."""
    days = {
        "pdf_ttl_days": _days(documents),
        "xml_ttl_days": _days(results),
        "events_ttl_days": _days(history),
        "jobs_ttl_days": _days(jobs),
    }
    wanted = {name: None if value == "default" else value for name, value in days.items() if value is not None}
    if on_download is not None:
        wanted["xml_on_download"] = on_download

    async def work(database: Database) -> Kept:
        async with database.hot() as connection:
            if wanted:
                return await rules.keep(connection, tenant, wanted)
            return await rules.of(connection, tenant)

    found = with_database(work)
    if as_json:
        print_json({"tenant": tenant, **asdict(found)})
        return
    print_facts([(_WORDS[name], styled(_shown(getattr(found, name)))) for name in LIMITS], indent=0)
    if found.hold_at is not None:
        remark(f"Under legal hold since {found.hold_at:%Y-%m-%d %H:%M} UTC: nothing is removed, whatever the limits.")


def _shown(value: float | bool | None) -> str:
    if value is None:
        return "as the janitor is set"
    if isinstance(value, bool):
        return "removed" if value else "kept"
    return f"{value:g} days"


def hold(
    tenant: Name,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for whoever asks later.")] = None,
    as_json: AsJson = False,
) -> None:
    """Put a tenant under legal hold: nothing of it is removed by anybody, until it is released."""

    async def write(database: Database) -> None:
        async with database.hot() as connection:
            await rules.hold(connection, tenant, reason)

    with_database(write)
    if as_json:
        print_json({"tenant": tenant, "held": True, "reason": reason})
    else:
        print_line(
            f"Tenant {tenant} is under legal hold. Nothing of it is removed until: waybill tenant release {tenant}"
        )


def release(tenant: Name, as_json: AsJson = False) -> None:
    """End a tenant's legal hold: what is past its time goes with the next run of the janitor."""

    async def write(database: Database) -> bool:
        async with database.hot() as connection:
            return await rules.release(connection, tenant)

    released = with_database(write)
    if as_json:
        print_json({"tenant": tenant, "held": False, "was_held": released})
    elif released:
        print_line(f"Tenant {tenant} is released. What is past its time goes with the next run of the janitor.")
    else:
        print_line(f"Tenant {tenant} was not under legal hold.")
