"""`waybill apikey`: the keys with which programs call the API and people sign their browsers in."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.options import AsJson, age
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill.errors import Refused
from waybill.pipelines import installed
from waybill.security import keys
from waybill.security.keys import EnsuredKey, KeyInfo, NewKey
from waybill.security.principals import known_permissions

app = typer.Typer(help="Manage API keys: create, ensure, ls, revoke.", no_args_is_help=True, rich_markup_mode=None)


def _permissions(given: list[str] | None) -> list[str]:
    """Those that were named; without any, what a browser may do without a key."""
    known = known_permissions()
    for name in given or ():
        if name not in known:
            raise typer.BadParameter(f"there is no permission {name!r}. Choose from: {', '.join(known)}")
    return given or [name for pipeline in installed() for name in pipeline.visitor_permissions]


_PERMISSIONS_HELP = (
    "What it may do; may be repeated: "
    + ", ".join(f"{name} ({words})" for name, words in known_permissions().items())
    + f". Default: {', '.join(_permissions(None))}."
)


_Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant it acts for.", show_default=False)]
_Name = Annotated[str, typer.Option("--name", metavar="TEXT", help="A name to recognise it by.")]
_Permission = Annotated[
    list[str] | None,
    typer.Option(
        "--permission", "-p", metavar="PERMISSION", callback=_permissions, help=_PERMISSIONS_HELP, show_default=False
    ),
]

_LONGEST_FILE = 1000


@app.command()
def create(
    tenant: _Tenant,
    name: _Name = "key",
    permission: _Permission = None,
    expires_in: Annotated[
        float | None,
        typer.Option("--expires-in", metavar="AGE", parser=age, help="How long it is valid: 90d. Default: for ever."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create an API key. It is printed once, now; only its hash is stored."""

    async def make(database: Database) -> NewKey:
        async with database.hot() as connection:
            return await keys.create(
                connection, tenant=tenant, name=name, permissions=permission or (), expires_in=expires_in
            )

    made = with_database(make)
    if as_json:
        print_json({"key": made.text, **_record(made.info)})
        return
    print_line(made.text)
    remark(f"This is the only time it is shown. Revoke it with: waybill apikey revoke {made.info.id}")


@app.command()
def ensure(
    tenant: _Tenant,
    file: Annotated[
        Path, typer.Option("--file", metavar="FILE", help="The file with the key, such as a mounted secret.")
    ],
    name: _Name = "key",
    permission: _Permission = None,
    as_json: AsJson = False,
) -> None:
    """Register the API key in a file, unless it is registered already. It is not printed.

    For whoever makes keys elsewhere, as the Helm chart makes the first admin key. A key that was revoked stays revoked.
    """
    text = _read_key(file)

    async def register(database: Database) -> EnsuredKey:
        async with database.hot() as connection:
            return await keys.ensure(connection, text, tenant=tenant, name=name, permissions=permission or ())

    ensured = with_database(register, patient=True)
    info = ensured.info
    if as_json:
        print_json({"new": ensured.new, **_record(info)})
    elif ensured.new:
        print_line(styled(f"Key {info.id} ({info.name}, tenant {info.tenant}) is registered."))
    else:
        print_line(
            styled(f"Key {info.id} ({info.name}, tenant {info.tenant}) was registered already; it is {info.state}.")
        )


def _read_key(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(_LONGEST_FILE).strip()
    except UnicodeDecodeError as error:
        raise Refused(f"{file} is not text.") from error
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}.") from error


@app.command()
def ls(
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="TENANT", help="Only keys of this tenant.")] = None,
    as_json: AsJson = False,
) -> None:
    """List all keys, including expired and revoked ones."""

    async def read(database: Database) -> list[KeyInfo]:
        async with database.hot() as connection:
            return await keys.ls(connection, tenant=tenant)

    found = with_database(read)
    if as_json:
        print_json({"keys": [_record(info) for info in found]})
    elif not found:
        remark("There are no keys. Create one with: waybill apikey create TENANT")
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
    key_id: Annotated[
        uuid.UUID, typer.Argument(metavar="ID", help="The key's id, from `waybill apikey ls`.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Revoke a key at once, and sign out the browsers that used it."""

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
