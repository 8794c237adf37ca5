"""`waybill tenant retention|hold|release`: how long a tenant's things are kept, and keeping all of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from waybill.console.database import with_database
from waybill.console.options import AsJson
from waybill.console.tables import print_facts
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill.errors import Refused
from waybill.pipelines import brought
from waybill.retention import LONGEST_DAYS, LegalHold, PipelineRetention, ages_of, holds, set_ages
from waybill_cli.tenants.fair_share import Name
from waybill_engine.retention import RULE_NAMES

_ON_DOWNLOAD = "downloads"

_OLD_NAMES = {
    "documents": "pdf_ttl_days",
    "results": "xml_ttl_days",
    _ON_DOWNLOAD: "xml_on_download",
    "events": "events_ttl_days",
    "jobs": "jobs_ttl_days",
}
"""What `--json` has called these rules since release 0.1.0."""


def _days(value: str) -> float | None:
    """None for 'default'."""
    if value == "default":
        return None
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
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="RULE=DAYS", help="The same for any retention rule of any pipeline."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how long a tenant's things are kept, or give the tenant ages of its own."""
    rules = _rules()
    named = {"documents": documents, "results": results, "events": history, "jobs": jobs}
    wanted = {rule: _days(value) for rule, value in named.items() if value is not None}
    if on_download is not None:
        wanted[_ON_DOWNLOAD] = 0.0 if on_download else LONGEST_DAYS
    for given in keep or ():
        rule, _, value = given.partition("=")
        wanted[rule] = _days(value)
    if unknown := sorted(wanted.keys() - rules.keys()):
        raise Refused(f"There is no retention rule {', '.join(unknown)}. There are: {', '.join(rules)}.")

    async def work(database: Database) -> tuple[dict[str, float], LegalHold | None]:
        async with database.hot() as connection:
            found = await set_ages(connection, tenant, wanted) if wanted else await ages_of(connection, tenant)
            return found, await holds.hold_of(connection, tenant)

    ages, held = with_database(work)
    if as_json:
        old = {name: _old_value(rule, ages.get(rule)) for rule, name in _OLD_NAMES.items()}
        hold_at, reason = (held.since, held.reason) if held is not None else (None, None)
        print_json({"tenant": tenant, "hold_at": hold_at, "hold_reason": reason, **old, "ages": ages})
        return
    print_facts([(words, styled(_shown(rule, ages.get(rule)))) for rule, words in rules.items()], indent=0)
    if held is not None:
        remark(f"Under legal hold since {held.since:%Y-%m-%d %H:%M} UTC: nothing is removed, whatever its age.")


def _rules() -> dict[str, str]:
    """Every retention rule there is, and what has its age: the pipelines' first, as the janitor applies them."""
    pipelines: list[PipelineRetention] = brought("retention")
    return {rule.name: rule.keeps for one in pipelines for rule in one.rules} | RULE_NAMES


def _old_value(rule: str, days: float | None) -> float | bool | None:
    return days if days is None or rule != _ON_DOWNLOAD else days == 0


def _shown(rule: str, days: float | None) -> str:
    if days is None:
        return "default"
    if rule == _ON_DOWNLOAD and days in (0, LONGEST_DAYS):
        return "kept" if days else "removed"
    return f"{days:g} days"


def hold(
    tenant: Name,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="The reason, kept with the hold.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put a tenant under legal hold: nothing of it is removed by anybody, until it is released."""

    async def write(database: Database) -> None:
        async with database.hot() as connection:
            await holds.hold(connection, tenant, reason)

    with_database(write)
    if as_json:
        print_json({"tenant": tenant, "held": True, "reason": reason})
    else:
        print_line(
            f"Tenant {tenant} is under legal hold. Nothing of it is removed until: waybill tenant release {tenant}"
        )


def release(tenant: Name, as_json: AsJson = False) -> None:
    """End a tenant's legal hold. The next janitor run removes what is past its age."""

    async def write(database: Database) -> bool:
        async with database.hot() as connection:
            return await holds.release(connection, tenant)

    released = with_database(write)
    if as_json:
        print_json({"tenant": tenant, "held": False, "was_held": released})
    elif released:
        print_line(f"Tenant {tenant} is released. The next janitor run removes what is past its age.")
    else:
        print_line(f"Tenant {tenant} was not under legal hold.")
