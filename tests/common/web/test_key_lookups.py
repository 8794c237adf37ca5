"""Keys are looked up together, and everybody gets their own answer."""

from __future__ import annotations

import asyncio

import asyncpg

from support.engine import Connect
from support.statements import Statements
from waybill.db import Database
from waybill.errors import Unauthorized, WaybillError
from waybill.security import ADMIN, keys
from waybill.web.key_lookups import KeyLookups


async def _made(db: Database, count: int) -> list[str]:
    async with db.hot() as connection:
        return [
            (await keys.create(connection, tenant="acme", name=f"key {number}", permissions=[ADMIN])).text
            for number in range(count)
        ]


async def test_everybody_who_waits_is_answered_by_few_statements(db: Database) -> None:
    right = await _made(db, 2)
    wrong = right[0][:26] + right[1][26:]
    lookups = KeyLookups(db)
    asked = [*right, *[wrong] * 1200]
    statements = Statements()
    async with statements.counting(db):
        found = await asyncio.gather(*(lookups.find(text) for text in asked), return_exceptions=True)
    assert [info.hint for info in found if not isinstance(info, BaseException)] == [text[-4:] for text in right]
    assert all(isinstance(info, Unauthorized) for info in found[2:])
    looked_up = [query for query in statements.sent if query.lstrip().startswith("SELECT")]
    assert len(looked_up) == 3
    assert len(statements.sent) <= 5, "and each right key is noted as used"
    assert (await lookups.find(right[1])).hint == right[1][-4:], "it goes on afterwards"


async def test_whoever_leaves_takes_nobody_along(db: Database) -> None:
    (right,) = await _made(db, 1)
    lookups = KeyLookups(db)
    gone, waits = (asyncio.create_task(lookups.find(right)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    assert (await waits).hint == right[-4:]


async def test_a_database_that_fails_fails_everybody_who_waits_and_nobody_after_them(
    db: Database, connect: Connect
) -> None:
    (right,) = await _made(db, 1)
    connection = await connect()
    lookups = KeyLookups(db)
    await connection.execute("ALTER TABLE api_keys RENAME TO elsewhere")
    found = await asyncio.gather(*(lookups.find(right) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(error, asyncpg.PostgresError | WaybillError) for error in found)
    await connection.execute("ALTER TABLE elsewhere RENAME TO api_keys")
    assert (await lookups.find(right)).hint == right[-4:]
