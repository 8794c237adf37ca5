"""Is the database's schema the one this program was built for?"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
from alembic.script import ScriptDirectory

from waybill.errors import WaybillError

if TYPE_CHECKING:
    from waybill.db.database import Connection

MIGRATIONS = Path(__file__).parent / "migrations"


class SchemaMismatch(WaybillError):
    """The database and this program are of different versions."""


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(MIGRATIONS))


def head() -> str:
    """The revision this program was built for."""
    revision = _scripts().get_current_head()
    assert revision is not None, "the package ships migrations"  # noqa: S101
    return revision


async def current(connection: Connection) -> str | None:
    """The revision the database is at, or None when it is empty."""
    try:
        found = await connection.fetchval("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        return None
    return str(found) if found is not None else None


async def check_schema(connection: Connection) -> None:
    at = await current(connection)
    if at == head():
        return
    known = {script.revision for script in _scripts().walk_revisions()}
    if at is None:
        raise SchemaMismatch("The database is empty. Run: waybill migrate")
    if at in known:
        raise SchemaMismatch(f"The database's schema is behind (at {at}, needs {head()}). Run: waybill migrate")
    raise SchemaMismatch(
        f"The database's schema is ahead: it is at {at}, which this program (at {head()}) does not know. "
        "Install the Waybill release that made it; check with: waybill migrate --check"
    )
