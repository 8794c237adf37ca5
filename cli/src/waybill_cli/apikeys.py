"""`waybill apikey`: keys that programs, and people at browsers, come in with."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.options import AsJson, age
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill.security import Permission, keys
from waybill.security.keys import KeyInfo, NewKey

app = typer.Typer(help="Let programs in: create, ls, revoke.", no_args_is_help=True, rich_markup_mode=None)

_DEFAULT = [Permission.CONVERT_READ, Permission.CONVERT_WRITE]


@app.command()
def create(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Whose things it opens.", show_default=False)],
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="What you call it, to know it again.")] = "key",
    permission: Annotated[
        list[Permission] | None,
        typer.Option("--permission", "-p", help="What it may do; may be repeated. Default: both convert permissions."),
    ] = None,
    expires_in: Annotated[
        float | None,
        typer.Option(
            "--expires-in", metavar="AGE", parser=age, help="How long it is good for: 90d. Default: for ever."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make an API key. It is shown once, now; only its hash is kept."""

    async def make(database: Database) -> NewKey:
        async with database.hot() as connection:
            return await keys.create(
                connection, tenant=tenant, name=name, permissions=permission or _DEFAULT, expires_in=expires_in
            )

    made = with_database(make)
    if as_json:
        print_json({"key": made.text, **_record(made.info)})
        return
    print_line(made.text)
    remark(f"This is the only time you see it. Revoke it with: waybill apikey revoke {made.info.id}")


@app.command()
def ls(
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="TENANT", help="Only keys of this tenant.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the keys there are and were."""

    async def read(database: Database) -> list[KeyInfo]:
        async with database.hot() as connection:
            return await keys.ls(connection, tenant=tenant)

    found = with_database(read)
    if as_json:
        print_json({"keys": [_record(info) for info in found]})
    elif not found:
        remark("There are no keys. Make one with: waybill apikey create TENANT")
    else:
        columns = [
            Column("ID"),
            Column("TENANT", most=40),
            Column("NAME", most=40),
            Column("ENDS IN"),
            Column("PERMISSIONS"),
            Column("STATE"),
            Column("EXPIRES"),
            Column("LAST USED"),
        ]
        print_table(columns, [_row(info) for info in found])


@app.command()
def revoke(
    key_id: Annotated[uuid.UUID, typer.Argument(metavar="ID", help="As `apikey ls` shows it.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """End a key at once, and sign out the browsers that came in with it."""

    async def end(database: Database) -> KeyInfo:
        async with database.hot() as connection:
            return await keys.revoke(connection, key_id)

    info = with_database(end)
    if as_json:
        print_json(_record(info))
    else:
        print_line(styled(f"Key {info.id} ({info.name}, tenant {info.tenant}) is revoked."))


def _record(info: KeyInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "tenant": info.tenant,
        "name": info.name,
        "hint": info.hint,
        "permissions": sorted(info.permissions),
        "state": info.state,
        "created_at": info.created_at,
        "expires_at": info.expires_at,
        "revoked_at": info.revoked_at,
        "last_used_at": info.last_used_at,
    }


def _row(info: KeyInfo) -> list[Text]:
    return [
        Text(str(info.id)),
        styled(info.tenant),
        styled(info.name),
        styled(f"…{info.hint}"),
        Text(", ".join(sorted(info.permissions))),
        Text(info.state, style="" if info.state == "active" else "dim"),
        Text(f"{info.expires_at:%Y-%m-%d}" if info.expires_at else "never"),
        Text(f"{info.last_used_at:%Y-%m-%d %H:%M}" if info.last_used_at else "never"),
    ]
