"""Every installed branch of migrations makes what its models describe, and says where it stands."""

from __future__ import annotations

import asyncpg
import pytest

from support.schema import differences_from_models
from waybill.db.branches import branches
from waybill.db.migrations import upgrade
from waybill.db.revisions import revisions, with_all_before
from waybill.db.schema import BranchStatus, SchemaMismatch, branch_statuses, check_schema, current


async def test_migrated_from_empty_the_schema_is_what_the_models_describe(empty_database_url: str) -> None:
    await upgrade(empty_database_url)
    assert await differences_from_models(empty_database_url) == []


async def test_migrating_what_is_current_changes_nothing(empty_database_url: str) -> None:
    connection = await asyncpg.connect(empty_database_url)
    for _ in range(2):
        await upgrade(empty_database_url)
        assert (await current(connection)).applied.keys() == revisions().keys()
        await check_schema(connection)
    await connection.close()


def test_the_platform_the_engine_and_every_pipeline_have_a_branch() -> None:
    assert [branch.name for branch in branches()][:2] == ["platform", "engine"]
    assert "convert" in [branch.name for branch in branches()]


def test_a_revision_comes_after_all_that_it_needs() -> None:
    # The convert pipeline's first revision depends on the engine's first, and that on the platform's.
    assert [one.name for one in with_all_before(["convert_0001"])] == ["platform_0001", "engine_0001", "convert_0001"]
    placed = {one.name: place for place, one in enumerate(with_all_before(revisions()))}
    assert placed.keys() == revisions().keys()
    for one in revisions().values():
        for needed in (one.follows, *one.depends_on):
            assert needed is None or placed[needed] < placed[one.name]


async def test_what_is_behind_is_said_branch_by_branch(empty_database_url: str) -> None:
    await upgrade(empty_database_url, [name for name, one in revisions().items() if one.branch == "engine"])
    connection = await asyncpg.connect(empty_database_url)
    with pytest.raises(SchemaMismatch, match="behind") as caught:
        await check_schema(connection)
    found = {one.branch: one for one in branch_statuses((await current(connection)).applied)}
    assert (found["engine"].at, found["engine"].behind) == (found["engine"].wanted, False)
    assert found["convert"] == BranchStatus("convert", None, found["convert"].wanted, behind=True)
    assert f"convert is missing and needs {found['convert'].wanted}" in caught.value.message
    assert "engine" not in caught.value.message
    await upgrade(empty_database_url)
    await check_schema(connection)
    await connection.close()
