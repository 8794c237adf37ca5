"""A migration stands in nobody's way, can be interrupted anywhere, and one runs at a time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import asyncpg
import pytest

from support.extra_branch import ExtraBranch
from support.patience import eventually
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill.db.revisions import revisions
from waybill.db.schema import current
from waybill_engine import JobKind, NewJob, enqueue

WORK = JobKind("work")


@pytest.fixture
def branch(tmp_path: Path) -> ExtraBranch:
    return ExtraBranch(tmp_path)


async def applied(connection: Connection) -> list[str]:
    rows = await connection.fetch("SELECT revision FROM schema_revisions WHERE branch = 'extra' ORDER BY 1")
    return [row["revision"] for row in rows]


async def test_beside_a_long_dump_a_migration_waits_and_enqueues_go_on(branch: ExtraBranch, database_url: str) -> None:
    branch.add("execute('ALTER TABLE jobs ADD COLUMN extra integer')")
    dump, client = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    reading = dump.transaction(isolation="repeatable_read", readonly=True)
    await reading.start()
    await dump.execute("LOCK TABLE jobs IN ACCESS SHARE MODE")  # as pg_dump does
    running = branch.start(database_url)
    slowest, tried = 0.0, 0
    waiting = (
        "SELECT count(*) FROM pg_locks WHERE relation = 'jobs'::regclass AND NOT granted AND mode LIKE 'AccessEx%'"
    )

    # Until the migration has come three times: each time, an enqueue comes while it waits, and stands behind it.
    while tried < 3:
        async with asyncio.timeout(60):
            while not await dump.fetchval(waiting):
                assert running.runs(), running.text
                await asyncio.sleep(0.01)
        began = time.monotonic()
        await enqueue(client, NewJob(WORK, "acme"))
        slowest, tried = max(slowest, time.monotonic() - began), tried + 1
    assert await client.fetchval("SELECT count(*) FROM jobs") == 3
    assert slowest < 10, "a second, and however long a busy machine needs for the rest"
    assert running.runs()

    await reading.rollback()
    code, said = await asyncio.to_thread(running.ended)
    assert code == 0, said
    assert "migration_waits" in said
    assert await applied(client) == ["extra_0001"]
    await enqueue(client, NewJob(WORK, "acme"))
    await dump.close()
    await client.close()


async def test_a_migration_that_is_blocked_for_too_long_gives_up_and_names_who_blocks(
    branch: ExtraBranch, database_url: str
) -> None:
    branch.add("execute('CREATE TABLE first_of_two (id int)')")
    branch.add("execute('CREATE TABLE second_of_two (id int)', 'ALTER TABLE jobs ADD COLUMN extra integer')")
    reader = await asyncpg.connect(database_url, server_settings={"application_name": "nightly dump"})
    async with reader.transaction():
        await reader.fetchval("SELECT count(*) FROM jobs")
        code, said = await asyncio.to_thread(branch.migrate, database_url, patience=0.5)
        assert code == 1
        assert f"process {reader.get_server_pid()} (nightly dump" in said
        assert "then run: waybill migrate" in said
        assert await applied(reader) == ["extra_0001"], "what is done is done"
        assert await reader.fetchval("SELECT to_regclass('second_of_two')") is None, "and the rest is not begun"
    code, said = await asyncio.to_thread(branch.migrate, database_url)
    assert code == 0, said
    assert await applied(reader) == ["extra_0001", "extra_0002"]
    await reader.close()


async def test_a_runner_that_is_killed_leaves_a_database_that_the_next_one_completes(
    branch: ExtraBranch, database_url: str
) -> None:
    branch.add("execute('CREATE TABLE first_of_two (id int)')")
    branch.add("execute('CREATE TABLE second_of_two (id int)', 'SELECT pg_advisory_xact_lock(1)')")
    connection = await asyncpg.connect(database_url)
    await connection.execute("SELECT pg_advisory_lock(1)")
    running = branch.start(database_url)

    async def is_half_way() -> bool:
        return await applied(connection) == ["extra_0001"]

    await eventually(is_half_way)
    running.kill()
    assert await applied(connection) == ["extra_0001"]
    await enqueue(connection, NewJob(WORK, "acme"))
    await connection.execute("SELECT pg_advisory_unlock(1)")
    code, said = await asyncio.to_thread(branch.migrate, database_url)
    assert code == 0, said
    assert await applied(connection) == ["extra_0001", "extra_0002"]
    await connection.close()


async def test_one_runner_works_and_the_others_wait(branch: ExtraBranch, empty_database_url: str) -> None:
    branch.add("execute('CREATE TABLE made_once (id int)', 'SELECT pg_advisory_xact_lock(1)')")
    branch.add("create_index('made_once_by_id', 'ON made_once (id)')")
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute("SELECT pg_advisory_lock(1)")
    running = [branch.start(empty_database_url) for _ in range(3)]
    there = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'waybill migrate'
    """

    async def all_are_there() -> bool:
        assert all(one.runs() for one in running)
        return bool(await connection.fetchval(there) >= 4)  # the one that works has two connections

    await eventually(all_are_there, within=60)
    await connection.execute("SELECT pg_advisory_unlock(1)")
    ended = [await asyncio.to_thread(one.ended) for one in running]
    assert [code for code, _ in ended] == [0, 0, 0], ended
    assert len(await connection.fetch("SELECT FROM schema_revisions")) == len(revisions()) + 2
    await connection.close()


async def test_an_index_is_made_while_others_write(branch: ExtraBranch, database_url: str) -> None:
    branch.add("create_index('jobs_extra', 'ON jobs (owner)')")
    writer, client = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    writing = writer.transaction()
    await writing.start()
    await enqueue(writer, NewJob(WORK, "acme"))
    running = branch.start(database_url)
    begun = "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('jobs_extra') AND NOT indisvalid)"

    async def has_begun() -> bool:
        assert running.runs(), running.text
        return bool(await client.fetchval(begun))

    await eventually(has_begun)
    async with asyncio.timeout(30):
        await enqueue(client, NewJob(WORK, "acme"))
    assert running.runs(), "it waits for the writer, and nobody waits for it"
    await writing.commit()
    code, said = await asyncio.to_thread(running.ended)
    assert code == 0, said
    assert await client.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_extra'::regclass")
    await writer.close()
    await client.close()


async def test_an_index_left_half_made_is_made_anew(branch: ExtraBranch, database_url: str) -> None:
    branch.add("create_index('jobs_one_owner', 'ON jobs (owner)', unique=True)")
    connection = await asyncpg.connect(database_url)
    jobs = [await enqueue(connection, NewJob(WORK, "acme")) for _ in range(2)]
    code, said = await asyncio.to_thread(branch.migrate, database_url)
    assert code == 1
    assert "jobs_one_owner" in said
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_one_owner'::regclass"
    assert await connection.fetchval(valid) is False
    assert await applied(connection) == []
    await connection.execute("DELETE FROM jobs WHERE id = $1", jobs[0].id)
    for _ in range(2):  # and one that is there already is left alone
        code, said = await asyncio.to_thread(branch.migrate, database_url)
        assert code == 0, said
        assert await connection.fetchval(valid) is True
        await connection.execute("DELETE FROM schema_revisions WHERE branch = 'extra'")
    await connection.close()


async def test_an_index_must_be_the_first_thing_that_a_revision_makes(branch: ExtraBranch, database_url: str) -> None:
    branch.add("execute('CREATE TABLE parcels (id int)'); create_index('parcels_by_id', 'ON parcels (id)')")
    code, said = await asyncio.to_thread(branch.migrate, database_url)
    assert code == 1
    assert "must be the first thing" in said
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT to_regclass('parcels')") is None
    await connection.close()


async def test_a_revision_tells_older_programs_which_release_it_needs(branch: ExtraBranch, database_url: str) -> None:
    branch.add("execute('CREATE TABLE parcels (id int)')", oldest_release="1.0")
    assert (await asyncio.to_thread(branch.migrate, database_url))[0] == 0
    connection = await asyncpg.connect(database_url)
    assert (await current(connection)).applied["extra_0001"].oldest_release == "1.0"
    await connection.close()
    await upgrade(database_url)


async def test_release_0_1_0_is_admitted_until_a_revision_needs_a_newer_one(
    branch: ExtraBranch, empty_database_url: str
) -> None:
    await upgrade(empty_database_url)
    connection = await asyncpg.connect(empty_database_url)
    assert await connection.fetchval("SELECT array_agg(version_num) FROM alembic_version") == ["0009"]
    branch.add("execute('DROP VIEW retained')", oldest_release="1.0")
    assert (await asyncio.to_thread(branch.migrate, empty_database_url))[0] == 0
    assert await connection.fetchval("SELECT array_agg(version_num) FROM alembic_version") == ["extra_0001"]
    await connection.close()
