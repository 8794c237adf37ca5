"""Connecting to Postgres: waiting for it, refusing a schema that is not ours, telling an outage from a mistake."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from support.forked import Forked
from support.pgbouncer import installed, pgbouncer
from support.server import embedded
from waybill.config import CommonSettings, DatabaseUrl
from waybill.db import Database, SchemaMismatch, driver
from waybill.db.migrations import upgrade
from waybill.db.session_settings import NOTHING_FORGOTTEN, ONE_PLAN
from waybill.errors import DatabaseUnavailable
from waybill.failures import classify, is_database_outage


def settings(url: str, **more: object) -> CommonSettings:
    return CommonSettings.model_validate({"database_url": url, **more})


async def test_an_empty_database_is_refused_with_the_command_to_run(empty_database_url: str) -> None:
    with pytest.raises(SchemaMismatch, match="waybill migrate"):
        await Database.connect(settings(empty_database_url))


async def test_a_schema_that_is_behind_is_refused_with_the_command_to_run(empty_database_url: str) -> None:
    await upgrade(empty_database_url)
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute("DELETE FROM schema_revisions WHERE revision = 'engine_0001'")
    await connection.close()
    with pytest.raises(SchemaMismatch, match="waybill migrate"):
        await Database.connect(settings(empty_database_url))


async def test_migrating_from_several_places_at_once_is_safe(empty_database_url: str, tmp_path: Path) -> None:
    migration = ("support.branch_migration", empty_database_url, "60")
    processes = [Forked(*migration, folder=tmp_path) for _ in range(3)]
    here = [upgrade(empty_database_url) for _ in range(2)]
    await asyncio.gather(*here)
    ended = [await asyncio.to_thread(process.ended) for process in processes]
    assert [code for code, _ in ended] == [0, 0, 0], ended
    database = await Database.connect(settings(empty_database_url))
    await database.close()


async def test_start_up_waits_for_postgres_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with embedded() as server:
        url = server.create_database("late")
        await upgrade(url)
        server.stop()
        connecting = asyncio.create_task(Database.connect(settings(url)))
        await asyncio.to_thread(server.start)
        database = await connecting
        await database.check()
        await database.close()
    assert "waiting_for_postgres" in capsys.readouterr().out


async def test_start_up_gives_up_with_advice_and_without_the_password() -> None:
    url = "postgresql://waybill:sesame@127.0.0.1:9/waybill"
    with pytest.raises(DatabaseUnavailable) as caught:
        await Database.connect(settings(url, database_connect_timeout=0))
    assert "WAYBILL_DATABASE_URL" in caught.value.message
    assert "sesame" not in caught.value.message


async def test_a_wrong_password_is_not_waited_out(database_url: str) -> None:
    wrong = database_url.replace("waybill:", "waybill:not", 1)
    with pytest.raises(asyncpg.InvalidPasswordError):
        await Database.connect(settings(wrong))


async def test_a_transaction_commits_or_leaves_nothing(db: Database, connect: object) -> None:
    async with db.transaction() as session:
        await (await driver(session)).execute("INSERT INTO queues (name) VALUES ('kept')")
    with pytest.raises(RuntimeError):
        async with db.transaction() as session:
            await (await driver(session)).execute("INSERT INTO queues (name) VALUES ('lost')")
            raise RuntimeError
    async with db.hot() as connection:
        names = await connection.fetch("SELECT name FROM queues")
    assert [row["name"] for row in names] == ["kept"]


async def test_losing_the_connection_is_an_outage_and_a_broken_statement_is_not(db: Database) -> None:
    with pytest.raises(Exception) as lost:
        async with db.transaction() as session:
            connection = await driver(session)
            async with db.hot() as other:
                await other.execute("SELECT pg_terminate_backend($1)", connection.get_server_pid())
            await session.connection()
            await connection.execute("SELECT 1")
    assert is_database_outage(lost.value)
    assert not classify(lost.value).charged

    with pytest.raises(asyncpg.UndefinedTableError) as broken:
        async with db.hot() as hot:
            await hot.execute("SELECT * FROM nowhere")
    assert not is_database_outage(broken.value)


async def test_a_connection_that_is_ended_between_two_steps_of_a_statement_is_an_outage(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = vars(asyncpg.Connection)["_get_statement"]

    async def prepare_and_end(connection: Any, *arguments: Any, **named: Any) -> Any:
        prepared = await prepare(connection, *arguments, **named)
        connection.terminate()  # as the heartbeat does when the network was gone
        return prepared

    monkeypatch.setattr(asyncpg.Connection, "_get_statement", prepare_and_end)
    with pytest.raises(Exception) as lost:
        async with db.hot() as connection:
            await connection.fetch("SELECT $1::int", 1)
    monkeypatch.undo()
    assert is_database_outage(lost.value)
    async with db.hot() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_the_pool_recovers_by_itself(db: Database) -> None:
    async with db.hot() as connection:
        pid = connection.get_server_pid()
    killer = await asyncpg.connect(db.url.asyncpg)
    await killer.execute("SELECT pg_terminate_backend($1)", pid)
    await killer.close()

    async def checks() -> bool:
        try:
            await db.check()
        except Exception as error:
            # Which one depends on whether the server's last word arrives before, while or after we ask.
            if not is_database_outage(error):
                raise
            return False
        return True

    assert await checks() or await checks()


async def test_however_often_it_is_asked_it_writes_once_a_second_at_most(db: Database) -> None:
    async with db.hot() as connection:
        before = await connection.fetchval("SELECT pg_current_xact_id()::text::bigint")
        await asyncio.gather(*(db.check_writable() for _ in range(50)))
        assert await connection.fetchval("SELECT pg_current_xact_id()::text::bigint") - before < 25


@pytest.mark.skipif(not installed(), reason="pgbouncer is not installed (Debian's package pgbouncer)")
async def test_a_pooler_that_nobody_told_us_of_is_named_at_once(database_url: str) -> None:
    with pgbouncer(database_url) as pooled:
        with pytest.raises(DatabaseUnavailable, match="Set WAYBILL_DATABASE_PGBOUNCER=true"):
            await asyncio.wait_for(Database.connect(settings(pooled, database_connect_timeout=600)), 60)
        db = await Database.connect(settings(pooled, database_pgbouncer=True))
        await db.check_writable()
        await db.close()


@pytest.mark.skipif(not installed(), reason="pgbouncer is not installed (Debian's package pgbouncer)")
async def test_a_pooler_that_ignores_what_connections_ask_for_is_named_at_once(database_url: str) -> None:
    # As many advise to set it up. It connects without a word, and workers would listen for ever and hear nothing.
    ignored = ", ".join([*ONE_PLAN, *NOTHING_FORGOTTEN, "extra_float_digits"])
    with (
        pgbouncer(database_url, f"ignore_startup_parameters = {ignored}") as pooled,
        pytest.raises(DatabaseUnavailable, match="Set WAYBILL_DATABASE_PGBOUNCER=true"),
    ):
        await asyncio.wait_for(Database.connect(settings(pooled, database_connect_timeout=600)), 60)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 4 MB that everybody may use."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk that is small enough to be filled")
    with tempfile.TemporaryDirectory(prefix="waybill-disk-") as folder:
        disk = Path(folder)
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=0777", "tmpfs", folder]
        if subprocess.run(mount, capture_output=True).returncode != 0:
            pytest.skip("mounting is not allowed here")
        disk.chmod(0o777)
        yield disk
        subprocess.run(["umount", folder], check=True)


async def test_a_full_disk_is_noticed(small_disk: Path) -> None:
    with embedded() as server:
        url = server.create_database("small")
        place = small_disk / "space"
        place.mkdir()
        os.chown(place, server.data.stat().st_uid, server.data.stat().st_gid)
        admin = await asyncpg.connect(url)
        await admin.execute(f"CREATE TABLESPACE small_disk LOCATION '{place}'")
        await admin.execute("ALTER SYSTEM SET temp_tablespaces = 'small_disk'")
        await admin.execute("SELECT pg_reload_conf()")
        await admin.close()
        db = Database(DatabaseUrl(url))
        before = Database(DatabaseUrl(url))
        await before.check_writable()
        await before.close()
        with (small_disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(65536))
        with pytest.raises(asyncpg.DiskFullError) as caught:
            await db.check_writable()
        assert is_database_outage(caught.value)
        (small_disk / "filler").unlink()
        await db.check_writable()
        await db.close()


async def test_a_connection_is_not_ended_because_this_process_stood_still(database_url: str) -> None:
    db = await Database.connect(settings(database_url), patience=0.5)
    try:
        async with db.hot() as connection:
            asking = asyncio.create_task(connection.fetchval("SELECT 'here'"))
            await asyncio.sleep(0)  # it is on its way
            time.sleep(1)
            assert await asking == "here"
            assert await connection.fetchval("SELECT 'still here'") == "still here"
        async with db.transaction() as session:
            time.sleep(1)
            assert await (await driver(session)).fetchval("SELECT 1") == 1
        with pytest.raises(asyncpg.PostgresConnectionError):
            async with db.hot() as connection:  # one that the server takes too long for still is
                await connection.fetchval("SELECT pg_sleep(30)")
    finally:
        await db.close()
