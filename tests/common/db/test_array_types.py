from __future__ import annotations

import datetime
import decimal
import uuid

import asyncpg
import pytest
from asyncpg.connection import LoggedQuery

from waybill.db import Database
from waybill.db.array_types import ARRAYS, ArrayConnection

VALUES = {
    "_bool": [True, False, None],
    "_bytea": [b"\x00a"],
    "_int2": [1, -2],
    "_int4": [1, None, 3],
    "_int8": [2**40],
    "_float4": [0.5],
    "_float8": [0.1],
    "_date": [datetime.date(2025, 8, 7)],
    "_timestamptz": [datetime.datetime(2025, 8, 7, 12, tzinfo=datetime.UTC)],
    "_interval": [datetime.timedelta(seconds=5)],
    "_numeric": [decimal.Decimal("1.10")],
    "_uuid": [uuid.UUID(int=1), None],
    "_jsonb": ['{"a": 1}'],
}


async def test_the_table_says_what_postgres_says(db: Database) -> None:
    async with db.hot() as connection:
        rows = await connection.fetch(
            "SELECT oid::int, typname, typelem::int FROM pg_type WHERE oid = ANY ($1::int[]::oid[]) AND typdelim = ','",
            list(ARRAYS),
        )
    assert {row["oid"]: (row["typname"], row["typelem"]) for row in rows} == ARRAYS


@pytest.mark.parametrize("name", VALUES)
async def test_an_array_goes_there_and_back_without_a_question_about_its_type(db: Database, name: str) -> None:
    async with db.hot() as connection:
        asked: list[str] = []

        def note(query: LoggedQuery) -> None:
            asked.append(query.query)

        connection.add_query_logger(note)
        statement = f"SELECT $1::{name.removeprefix('_')}[]"
        try:
            assert await connection.fetchval(statement, VALUES[name]) == VALUES[name]
        finally:
            connection.remove_query_logger(note)
    assert asked == [statement]


async def test_every_array_of_the_table_is_tried() -> None:
    assert set(VALUES) == {name for name, _ in ARRAYS.values()}


async def test_types_of_somebodys_own_are_asked_for_beside_them(database_url: str) -> None:
    connection = await asyncpg.connect(database_url, connection_class=ArrayConnection)
    try:
        await connection.execute("CREATE TYPE public.colour AS ENUM ('red', 'green')")
        row = await connection.fetchrow("SELECT $1::public.colour[] AS colours, $2::int[] AS numbers", ["red"], [1])
        assert row is not None
        assert dict(row) == {"colours": ["red"], "numbers": [1]}
    finally:
        await connection.close()
