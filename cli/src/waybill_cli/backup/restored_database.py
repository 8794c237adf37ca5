"""Makes a dump the database, and makes right what a restored database cannot know.

The schema that is replaced steps aside and is dropped at the very end. If anything fails before that, it steps back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from waybill.db.schema import REPLACED
from waybill.errors import Refused

if TYPE_CHECKING:
    from waybill.db.database import Connection

NAME = "waybill restore"

_OTHERS = """
SELECT DISTINCT concat_ws(' ', COALESCE(NULLIF(application_name, ''), 'a program without a name'),
                          'from ' || host(client_addr))
  FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> $1
   AND pid <> pg_backend_pid()
 ORDER BY 1
"""

_TABLES = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('public') AND relkind IN ('r', 'p')"

# As long as there is such a schema, no service starts, and nobody migrates (`waybill.db.schema`).
_STEP_ASIDE = f"ALTER SCHEMA public RENAME TO {REPLACED}"
_STEP_BACK = ("DROP SCHEMA IF EXISTS public CASCADE", f"ALTER SCHEMA {REPLACED} RENAME TO public")
_LEAVE = f"DROP SCHEMA {REPLACED} CASCADE"

# Each server numbers its transactions itself, and clients that follow a list rely on these numbers growing.
_RENUMBER = """
DO $$
DECLARE
    numbered record;
BEGIN
    FOR numbered IN
        SELECT attrelid::regclass AS name, attname AS number
          FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND atttypid = 'xid8'::regtype
           AND NOT attisdropped
    LOOP
        EXECUTE format('UPDATE %s SET %I = pg_current_xact_id()', numbered.name, numbered.number);
    END LOOP;
END
$$
"""

# The janitor of the old place is gone, and what it had looked at there says nothing about this place.
_NO_JANITOR = "UPDATE janitor_lease SET expires_at = now() WHERE expires_at > now()"
_NOT_LOOKED = "DELETE FROM janitor_places"

_MARK = "SELECT encode(sha256(value), 'hex') FROM secrets WHERE name = 'storage owner'"


async def undo_killed_restore(connection: Connection) -> None:
    """A restore that was killed left the database as it was before it, under another name."""
    if await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", REPLACED):
        await _step_back(connection)


async def refuse_company(connection: Connection) -> None:
    """Refused while anybody else is connected to this database; it says who."""
    others = [row[0] for row in await connection.fetch(_OTHERS, NAME)]
    if others:
        raise Refused(
            f"Others are connected to this database: {', '.join(others)}. Stop all services (and suspend the janitor), "
            "then restore."
        )


async def refuse_full(connection: Connection, *, replace: bool) -> bool:
    """Whether there is something to replace. Refused if there is, and nobody asked for that."""
    tables = await connection.fetchval(_TABLES)
    if tables and not replace:
        raise Refused(
            f"This database is not empty: it has {tables} tables. Restore into an empty one, or give --replace, which "
            "drops everything in it."
        )
    return bool(tables)


async def mark_of_replaced(connection: Connection) -> bytes | None:
    """The mark of the storage that belongs to the database as it is now."""
    if not await connection.fetchval("SELECT to_regclass('secrets') IS NOT NULL"):
        return None
    found = await connection.fetchval(_MARK)
    return str(found).encode() if found is not None else None


@asynccontextmanager
async def replaced_schema(connection: Connection) -> AsyncIterator[None]:
    """A database without the schema `public`, in which it is to be made. If the block fails, the old one is back."""
    had_one = await connection.fetchval("SELECT to_regnamespace('public') IS NOT NULL")
    if had_one:
        await connection.execute(_STEP_ASIDE)
    try:
        yield
    except BaseException:
        if had_one:
            await _step_back(connection)
        raise
    if had_one:
        await connection.execute(_LEAVE)


async def _step_back(connection: Connection) -> None:
    async with connection.transaction():
        for statement in _STEP_BACK:
            await connection.execute(statement)


async def settle(connection: Connection) -> None:
    """What is in the dump and is not true here any more."""
    await connection.execute(_RENUMBER)
    await connection.execute(_NOT_LOOKED)
    await connection.execute(_NO_JANITOR)
