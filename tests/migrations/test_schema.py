"""A program runs on every schema that has what it needs, and on no other."""

from __future__ import annotations

import asyncpg
import pytest

from support.schema import all_rows
from waybill.db.branches import branches
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill.db.schema import SchemaMismatch, branch_statuses, check_schema, current

RELEASE = branches()[0].release


async def add(connection: Connection, revision: str, branch: str, oldest_release: str | None = None) -> None:
    await connection.execute(
        "INSERT INTO schema_revisions (revision, branch, oldest_release) VALUES ($1, $2, $3)",
        revision,
        branch,
        oldest_release,
    )


async def test_newer_revisions_that_only_add_disturb_nobody(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await add(connection, "engine_9998", "engine")
    await add(connection, "engine_9999", "engine", RELEASE)
    before = await connection.fetch("SELECT * FROM schema_revisions ORDER BY revision")
    await check_schema(connection)
    await upgrade(database_url)
    assert await connection.fetch("SELECT * FROM schema_revisions ORDER BY revision") == before, "nothing to do"
    [engine] = [one for one in branch_statuses((await current(connection)).applied) if one.branch == "engine"]
    assert (engine.at, engine.behind) == ("engine_9999", False)
    await connection.close()


async def test_a_branch_that_is_not_installed_here_disturbs_nobody(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await add(connection, "parcels_0003", "parcels", "99.0")
    await check_schema(connection)
    await upgrade(database_url)
    await connection.close()


@pytest.mark.parametrize("release", ["99.0.0", f"{RELEASE}.1"])
async def test_a_revision_that_needs_a_newer_release_is_refused_by_older_ones(database_url: str, release: str) -> None:
    connection = await asyncpg.connect(database_url)
    await add(connection, "engine_9998", "engine", "0.1")
    await add(connection, "engine_9999", "engine", release)
    for refused in (check_schema(connection), upgrade(database_url)):
        with pytest.raises(SchemaMismatch, match="engine_9999 needs release") as caught:
            await refused
        assert f"release {release} of engine or a newer one, and this is {RELEASE}" in caught.value.message
    await connection.close()


async def test_an_application_with_migrations_of_its_own_keeps_them(empty_database_url: str) -> None:
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute("CREATE TABLE alembic_version (version_num text)")
    await connection.execute("INSERT INTO alembic_version VALUES ('ae1027a6acf')")
    with pytest.raises(SchemaMismatch, match=r"empty\. Run: waybill migrate"):
        await check_schema(connection)
    await upgrade(empty_database_url)
    await check_schema(connection)
    assert await connection.fetchval("SELECT array_agg(version_num) FROM alembic_version") == ["ae1027a6acf"]
    await connection.close()


async def test_a_database_with_its_branches_in_alembics_table_is_adopted(empty_database_url: str) -> None:
    """As `waybill migrate` left it between the releases 0.1.0 and 0.2.0."""
    connection = await asyncpg.connect(empty_database_url)
    await upgrade(empty_database_url, ["convert_0001", "engine_0002", "platform_0002"])
    await connection.execute("INSERT INTO tenants (name) VALUES ('acme')")
    await connection.execute("""
        DROP TABLE schema_revisions;
        DELETE FROM alembic_version;
        INSERT INTO alembic_version VALUES ('convert_0001'), ('engine_0002'), ('platform_0002')
    """)
    with pytest.raises(SchemaMismatch, match=r"Run: waybill migrate"):
        await check_schema(connection)
    before = await all_rows(empty_database_url)
    await upgrade(empty_database_url)
    await check_schema(connection)
    assert {table: rows for table, rows in (await all_rows(empty_database_url)).items() if table in before} == before
    assert await connection.fetchval("SELECT array_agg(version_num) FROM alembic_version") == ["0009"]
    await connection.close()
