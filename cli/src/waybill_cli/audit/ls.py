"""`waybill audit ls`: the trail, newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from waybill.audit.queries import AuditEvent, EventFilter, EventPage, page
from waybill.console.database import with_database
from waybill.console.human_units import parse_duration
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, remark, styled
from waybill.db import Database

_NOW = "SELECT now()"


def _moment(typed: str | None) -> datetime | float | None:
    """A time, or seconds before now."""
    if typed is None:
        return None
    try:
        return parse_duration(typed, unit_required=True)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(typed)
    except ValueError:
        raise typer.BadParameter(f"{typed!r} is neither a time (2026-03-01T12:00) nor an age (12h, 30d)") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def ls(
    who: Annotated[
        str | None,
        typer.Option("--who", metavar="WHO", help="An actor, an address, or the id of a key, session or request."),
    ] = None,
    action: Annotated[
        str | None,
        typer.Option("--action", metavar="ACTION", help="An action (key.created), or all that begin so (key)."),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="TENANT", help="Only events about things of this tenant.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="SUBJECT", help="Only events about this: job:ID, queue:NAME.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Not before this time (UTC), or this long ago: 12h.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before this time, likewise.")] = None,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="CURSOR", help="The next page.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=10_000, help="How many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List what was done and refused, newest first."""
    first, last = _moment(since), _moment(until)

    async def read(database: Database) -> EventPage:
        async with database.hot() as connection:
            now: datetime = await connection.fetchval(_NOW)
            wanted = EventFilter(who, action, tenant, _absolute(first, now), _absolute(last, now), subject)
            return await page(connection, wanted, cursor=cursor, limit=limit)

    found = with_database(read)
    if as_json:
        print_json({"events": [event.record() for event in found.events], "next": found.next})
        return
    if not found.events:
        remark("There are no such events.")
        return
    columns = [
        Column("AT (UTC)"),
        Column("ACTION"),
        Column("SUBJECT", most=60),
        Column("TENANT", most=30, drop=2),
        Column("TIMES", right=True, drop=4),
        Column("ADDRESS", drop=3),
        Column("CHAIN", right=True, drop=5),
        Column("ACTOR", least=20),
    ]
    print_table(columns, [_row(event) for event in found.events])
    if found.next is not None:
        remark(f"There are more: --cursor {found.next}")


def _absolute(given: datetime | float | None, now: datetime) -> datetime | None:
    if given is None or isinstance(given, datetime):
        return given
    return datetime.fromtimestamp(now.timestamp() - given, UTC)


def _row(event: AuditEvent) -> list[Text]:
    refused = event.outcome == "refused"
    return [
        Text(f"{event.at:%Y-%m-%d %H:%M:%S}"),
        styled(event.action, "yellow" if refused else ""),
        styled(event.subject or ""),
        styled(event.tenant or ""),
        Text(f"{event.times:,}" if event.times > 1 else ""),
        styled(event.address or ""),
        Text("-" if event.position is None else str(event.position), "dim"),
        styled(event.actor if event.key_id is None else f"{event.actor} key:{event.key_id}"),
    ]
