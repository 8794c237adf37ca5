"""Every installed branch of migrations makes what its models describe, and says where it stands."""

from __future__ import annotations

import asyncpg
import pytest

from support.schema import differences_from_models
from waybill.db.branches import branches
from waybill.db.migrations import upgrade
from waybill.db.schema import SchemaMismatch, Standing, check_schema, current, standings

LATEST = {one.wanted for one in standings(())}


async def test_migrated_from_empty_the_schema_is_what_the_models_describe(empty_database_url: str) -> None:
    await upgrade(empty_database_url)
    assert await differences_from_models(empty_database_url) == []


async def test_migrating_what_is_current_changes_nothing(empty_database_url: str) -> None:
    connection = await asyncpg.connect(empty_database_url)
    for _ in range(2):
        await upgrade(empty_database_url)
        assert await current(connection) == LATEST
        await check_schema(connection)
    await connection.close()


def test_the_platform_the_engine_and_every_pipeline_have_a_branch() -> None:
    assert [branch.name for branch in branches()][:2] == ["platform", "engine"]
    assert "convert" in [branch.name for branch in branches()]


def test_a_branch_stands_where_the_last_of_its_applied_revisions_is() -> None:
    at = {one.branch: one for one in standings({"convert_0001"})}
    assert at["convert"].at == "convert_0001"
    # The convert pipeline's first revision depends on the engine's first, and that on the platform's.
    assert (at["engine"].at, at["platform"].at) == ("engine_0001", "platform_0001")
    assert {one.at for one in standings(())} == {None}


async def test_what_is_behind_is_said_branch_by_branch(empty_database_url: str) -> None:
    await upgrade(empty_database_url, "engine@head")
    connection = await asyncpg.connect(empty_database_url)
    with pytest.raises(SchemaMismatch, match="behind") as caught:
        await check_schema(connection)
    behind = {one.branch: one for one in standings(await current(connection))}
    assert behind["engine"].at == behind["engine"].wanted
    assert behind["convert"] == Standing("convert", None, behind["convert"].wanted)
    assert f"convert is missing and needs {behind['convert'].wanted}" in caught.value.message
    assert "engine" not in caught.value.message
    await upgrade(empty_database_url)
    await check_schema(connection)
    await connection.close()


async def test_a_branch_that_is_not_installed_is_neither_served_nor_migrated(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("INSERT INTO alembic_version (version_num) VALUES ('parcels_0003')")
    for refused in (check_schema(connection), upgrade(database_url)):
        with pytest.raises(SchemaMismatch, match="parcels_0003, which nothing installed here knows"):
            await refused
    await connection.close()
