"""A database of release 0.1.0 is upgraded in place, and both releases can work on it side by side."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from support.release_0_1_0 import DATA, migrate, unpack
from support.schema import all_rows, differences_from_models, dumped, same_columns
from waybill import retention
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill.db.schema import SchemaMismatch, check_schema


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("release"))


async def execute(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(script)
    await connection.close()


async def test_upgraded_in_place_it_has_the_same_schema_as_a_new_one_and_all_its_rows(
    library: Path, empty_database_url: str, database_url: str
) -> None:
    migrate(library, empty_database_url)
    await execute(empty_database_url, DATA)
    before = await all_rows(empty_database_url)
    assert all(before.values()), "every table has rows to carry along"
    connection = await asyncpg.connect(empty_database_url)
    with pytest.raises(SchemaMismatch, match=r"still has the schema of release 0\.1\.0\. Run: waybill migrate"):
        await check_schema(connection)

    await upgrade(empty_database_url)

    await check_schema(connection)
    assert dumped(empty_database_url) == dumped(database_url)
    assert await differences_from_models(empty_database_url) == []
    after = await all_rows(empty_database_url)
    assert same_columns(after, before) == before
    assert await retention.ages_of(connection, "acme") == {"documents": 1.5, "results": 60, "downloads": 0}
    assert await retention.ages_of(connection, "keeper") == {"downloads": 36500, "events": 365}
    assert await retention.ages_of(connection, "plain") == {}
    await connection.close()
    await upgrade(empty_database_url)
    assert await all_rows(empty_database_url) == after


async def test_an_upgrade_that_fails_leaves_a_database_of_release_0_1_0(library: Path, empty_database_url: str) -> None:
    migrate(library, empty_database_url)
    await execute(empty_database_url, DATA + "CREATE TABLE retention_ages (in_the_way int)")
    before = dumped(empty_database_url), await all_rows(empty_database_url)
    with pytest.raises(Exception, match="retention_ages"):
        await upgrade(empty_database_url)
    assert (dumped(empty_database_url), await all_rows(empty_database_url)) == before
    connection = await asyncpg.connect(empty_database_url)
    assert await connection.fetchval("SELECT version_num FROM alembic_version") == "0009"
    await connection.execute("DROP TABLE retention_ages")
    await upgrade(empty_database_url)
    await check_schema(connection)
    await connection.close()


async def test_a_database_older_than_release_0_1_0_needs_that_release_first(
    library: Path, empty_database_url: str
) -> None:
    migrate(library, empty_database_url, "0007")
    connection = await asyncpg.connect(empty_database_url)
    for refused in (upgrade(empty_database_url), check_schema(connection)):
        with pytest.raises(SchemaMismatch, match=r"at 0007.*Migrate it with release 0\.1\.0 first"):
            await refused
    await connection.close()
    migrate(library, empty_database_url)
    await upgrade(empty_database_url)


COLUMNS = """
SELECT pdf_ttl_days, xml_ttl_days, xml_on_download, events_ttl_days, jobs_ttl_days FROM tenants WHERE name = $1
"""

# As release 0.1.0 gives a tenant limits of its own.
KEEP = """
INSERT INTO tenants AS known (name, pdf_ttl_days, xml_ttl_days, xml_on_download, events_ttl_days, jobs_ttl_days)
VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (name) DO UPDATE
       SET pdf_ttl_days = excluded.pdf_ttl_days, xml_ttl_days = excluded.xml_ttl_days,
           xml_on_download = excluded.xml_on_download, events_ttl_days = excluded.events_ttl_days,
           jobs_ttl_days = excluded.jobs_ttl_days
"""


async def columns(hot: Connection, tenant: str) -> tuple[object, ...] | None:
    row = await hot.fetchrow(COLUMNS, tenant)
    return tuple(row) if row is not None else None


async def test_what_release_0_1_0_writes_is_what_this_one_reads(database_url: str) -> None:
    hot = await asyncpg.connect(database_url)
    await hot.execute(KEEP, "acme", 3, None, True, 90, None)
    assert await retention.ages_of(hot, "acme") == {"documents": 3, "downloads": 0, "events": 90}
    await hot.execute(KEEP, "acme", 4, 60, False, None, None)
    assert await retention.ages_of(hot, "acme") == {"documents": 4, "results": 60, "downloads": 36500}
    await hot.execute("INSERT INTO retention_ages VALUES ('acme', 'parcels', 5)")
    await hot.execute(KEEP, "acme", None, None, None, None, None)
    assert await retention.ages_of(hot, "acme") == {"parcels": 5}, "what the columns cannot say stays"
    await hot.execute("DELETE FROM tenants WHERE name = 'acme'")
    assert await retention.ages_of(hot, "acme") == {}
    await hot.close()


async def test_what_this_release_writes_is_what_release_0_1_0_reads(database_url: str) -> None:
    hot = await asyncpg.connect(database_url)
    await retention.set_ages(hot, "acme", {"documents": 3, "downloads": 0, "jobs": 20, "parcels": 5})
    assert await columns(hot, "acme") == (3, None, True, None, 20)
    await retention.set_ages(hot, "acme", {"documents": None, "downloads": 36500, "events": 365})
    assert await columns(hot, "acme") == (None, None, False, 365, 20)
    await retention.set_ages(hot, "acme", {"downloads": 3})
    assert await columns(hot, "acme") == (None, None, False, 365, 20), "it must not remove what is kept for three days"
    await hot.execute("UPDATE tenants SET xml_on_download = false, jobs_ttl_days = 21 WHERE name = 'acme'")
    assert await retention.ages_of(hot, "acme") == {"downloads": 3, "events": 365, "jobs": 21, "parcels": 5}
    await retention.set_ages(hot, "other", {"parcels": 5})
    assert await columns(hot, "other") is None, "an age of a pipeline that it does not know is none of its business"
    await hot.close()
