"""`waybill backup` and `waybill restore`: whole or not there, checked before anything is touched, undone if it fails.

That a whole system comes back is shown in `tests/endtoend/test_backup.py`, and with `make up` in `tests/local`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from support.command_line import Ran, Waybill
from support.janitor import document, result_key
from support.s3 import KEY_ID, SECRET, Bucket, s3_server
from waybill.config import DatabaseUrl
from waybill.db import Database
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill.db.schema import current
from waybill.errors import Refused
from waybill.security import keys
from waybill.storage import LocalStorage
from waybill.storage.owner_mark import check_owner
from waybill_cli.backup.backup_folder import OBJECTS
from waybill_cli.backup.database_dump import PostgresProgramFailed, dump
from waybill_cli.backup.manifest import (
    DUMP,
    FORMAT,
    MANIFEST,
    STORAGE,
    BackedUpRevision,
    HashedFile,
    Manifest,
    read_manifest,
)
from waybill_cli.backup.postgres_programs import PostgresProgram, program_for
from waybill_cli.backup.withdrawals import Withdrawals
from waybill_cli.local.lock import take_lock
from waybill_engine import erasure


class Place:
    """A database and its storage, and the commands that use them."""

    def __init__(self, bare: Waybill, url: str, folder: Path) -> None:
        self._bare = bare
        self.url = url
        self.folder = folder
        self.storage = LocalStorage(folder)
        self.database = Database(DatabaseUrl(url))

    async def run(self, *arguments: object) -> Ran:
        return await self._bare(*arguments, WAYBILL_DATABASE_URL=self.url, WAYBILL_STORAGE_URL=str(self.folder))

    async def back_up(self, *arguments: object) -> Path:
        ran = await self.run("backup", "--to", "backups", "--json", *arguments)
        assert ran.code == 0, ran.err
        return Path(ran.json["backup"])


@pytest.fixture
async def old(bare: Waybill, database_url: str, tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(bare, database_url, tmp_path / "old-storage")
    await check_owner(place.database, place.storage, claim=True)
    yield place
    await place.database.close()


@pytest.fixture
async def new(bare: Waybill, empty_database_url: str, tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(bare, empty_database_url, tmp_path / "new-storage")
    yield place
    await place.database.close()


async def ask(place: Place, statement: str, *arguments: object) -> object:
    connection = await asyncpg.connect(place.url)
    try:
        return await connection.fetchval(statement, *arguments)
    finally:
        await connection.close()


async def is_untouched(place: Place) -> bool:
    """Whether nothing was restored into the empty place."""
    tables = await ask(place, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    return tables == 0 and not place.folder.exists()


async def test_a_backup_is_private_and_shares_what_the_last_one_has(old: Place, hot: Connection) -> None:
    await document(hot, old.storage)
    first = await old.back_up()
    late = await document(hot, old.storage)
    second = await old.back_up()
    assert first != second
    written = read_manifest(second)
    assert written.object_count == 2 * 3 + 1, "documents, results, records and the mark"
    shared = [path for path in (second / STORAGE).rglob("*") if path.is_file() and path.stat().st_nlink == 2]
    assert len(shared) == 4
    assert (second / STORAGE / result_key(late, 1, "xml")).read_bytes() == b"<a/>"
    assert second.stat().st_mode & 0o077 == 0
    assert [path.name for path in second.iterdir() if path.is_file() and path.stat().st_mode & 0o077] == []
    third = await old.back_up("--full", "--keep", 1)
    assert [path.name for path in third.parent.glob("waybill-*")] == [third.name]
    assert {path.stat().st_nlink for path in (third / STORAGE).rglob("*") if path.is_file()} == {1}
    assert (await old.run("backup", "verify", third)).code == 0


async def test_a_backup_that_fails_or_is_killed_leaves_none(old: Place, tmp_path: Path) -> None:
    half = tmp_path / "backups" / ".half-waybill-2026-11-18T02-00-00Z"
    half.mkdir(parents=True)  # as a killed one leaves it
    (half / DUMP).write_bytes(b"half")
    shutil.rmtree(old.folder)  # as if it were not mounted
    failed = await old.run("backup", "--to", "backups")
    assert failed.code == 1
    assert "storage" in failed.err
    assert [path.name for path in (tmp_path / "backups").iterdir()] == [".lock"]


@pytest.mark.parametrize("name", [DUMP, OBJECTS, MANIFEST, f"{STORAGE}/waybill-owner"])
async def test_a_damaged_backup_is_refused_before_anything_is_touched(old: Place, new: Place, name: str) -> None:
    backup = await old.back_up()
    data = bytearray((backup / name).read_bytes())
    data[len(data) // 2] ^= 1
    (backup / name).write_bytes(data)
    for command in (("backup", "verify", backup), ("restore", backup)):
        ran = await new.run(*command)
        assert ran.code == 1, ran.out
        assert Path(name).name in ran.err
        assert "Use another backup" in ran.err
    assert await is_untouched(new)


async def test_a_restore_that_fails_leaves_the_database_as_it_was(old: Place, new: Place) -> None:
    backup = await old.back_up()
    (backup / DUMP).write_bytes(b"PGDMP and then nothing that pg_restore could read")
    written = read_manifest(backup)
    written.model_copy(update={"database": HashedFile.of(backup / DUMP)}).write(backup)  # its hash is right
    await ask(new, "CREATE TABLE precious AS SELECT 'kept' AS word")
    failed = await new.run("restore", backup, "--replace")
    assert failed.code == 1
    assert "pg_restore" in failed.err
    assert await ask(new, "SELECT word FROM precious") == "kept"


async def test_a_restore_that_was_killed_is_undone_by_the_next(old: Place, new: Place) -> None:
    backup = await old.back_up()
    await ask(new, "CREATE TABLE precious AS SELECT 'kept' AS word")
    await ask(new, "ALTER SCHEMA public RENAME TO waybill_replaced")  # and then it was killed
    for command in (("migrate",), ("jobs", "ls"), ("backup", "--to", "x")):
        ran = await new.run(*command)
        assert ran.code == 2, "nobody works on half a database, or makes a new one beside it"
        assert "run it again" in ran.err
    refused = await new.run("restore", backup)
    assert "not empty" in refused.err
    assert await ask(new, "SELECT word FROM precious") == "kept"


async def test_the_storage_of_another_database_is_refused(old: Place, new: Place) -> None:
    backup = await old.back_up()
    await new.storage.put("waybill-owner", b"somebody else's")
    refused = await new.run("restore", backup)
    assert refused.code == 1
    assert "belongs to another database" in refused.err
    assert await new.storage.get("waybill-owner") == b"somebody else's"


async def test_a_new_start_is_replaced_only_on_request_and_with_its_storage(
    old: Place, new: Place, hot: Connection
) -> None:
    """As after `make up` in an empty place, before somebody thought of the backup: database and storage are new."""
    job = await document(hot, old.storage)
    backup = await old.back_up()
    await upgrade(new.url)
    await check_owner(new.database, new.storage, claim=True)
    await new.database.close()
    theirs = await new.storage.get("waybill-owner")
    refused = await new.run("restore", backup)
    assert refused.code == 1
    assert "--replace" in refused.err
    assert await new.storage.get("waybill-owner") == theirs
    assert await ask(new, "SELECT count(*) FROM jobs") == 0

    ran = await new.run("restore", backup, "--replace")
    assert ran.code == 0, ran.err
    assert "every object that a row names is there" in ran.out
    assert await new.storage.get(result_key(job, 1, "xml")) == b"<a/>"
    assert await new.storage.get("waybill-owner") == await old.storage.get("waybill-owner")
    assert await ask(new, "SELECT to_regnamespace('waybill_replaced')") is None


async def test_what_was_erased_or_revoked_since_does_not_come_back(old: Place, new: Place, hot: Connection) -> None:
    erased = await document(hot, old.storage, tenant="leaver")
    kept = await document(hot, old.storage, tenant="stayer")
    key = await keys.create(hot, tenant="stayer", name="lost", permissions=["admin"])
    backup = await old.back_up()
    await erasure.request(hot, "leaver")
    await keys.revoke(hot, key.info.id)
    await old.back_up()  # a newer one beside it knows of both
    ran = await new.run("restore", backup)
    assert ran.code == 0, ran.err
    assert "1 of later than the backup were done again" in ran.out
    assert await ask(new, "SELECT count(*) FROM jobs WHERE tenant = 'leaver'") == 0
    assert not await new.storage.exists(result_key(erased, 1, "xml"))
    assert await new.storage.exists(result_key(kept, 1, "xml"))
    assert await ask(new, "SELECT revoked_at IS NOT NULL FROM api_keys WHERE id = $1", key.info.id)
    assert await ask(new, "SELECT finished_at IS NOT NULL FROM erasures")
    assert await ask(new, "SELECT actor LIKE 'command:%' FROM audit_events WHERE action = 'database.restored'")


async def test_the_database_that_is_replaced_knows_who_was_erased(old: Place, hot: Connection) -> None:
    await document(hot, old.storage, tenant="leaver")
    backup = await old.back_up()
    await erasure.request(hot, "leaver")
    await hot.close()
    await old.database.close()
    ran = await old.run("restore", backup, "--replace")
    assert ran.code == 0, ran.err
    assert await ask(old, "SELECT count(*) FROM jobs WHERE tenant = 'leaver'") == 0


async def test_a_restored_database_looks_anew_and_numbers_anew(old: Place, new: Place, hot: Connection) -> None:
    job = await document(hot, old.storage)
    await old.storage.delete(result_key(job, 1, "xml"))  # as if while the backup was made
    await hot.execute("UPDATE conversions SET changed = '9000000000000'")  # a server with a long life
    await hot.execute("INSERT INTO janitor_places (task, place) VALUES ('missing', '{}')")
    await hot.execute("INSERT INTO janitor_lease VALUES ('janitor', 7, 'gone', now() + interval '1 hour')")
    ran = await new.run("restore", await old.back_up())
    assert ran.code == 0, ran.err
    assert "looked at everything: 1 objects are missing" in ran.out
    assert await ask(new, "SELECT changed < pg_current_xact_id() FROM conversions WHERE job_id = $1", job)
    assert await ask(new, "SELECT count(*) FROM janitor_places") == 0
    assert await ask(new, "SELECT expires_at <= now() FROM janitor_lease")


async def test_an_older_backup_is_migrated_and_a_newer_one_is_refused(old: Place, new: Place, tmp_path: Path) -> None:
    backup = await old.back_up("--without-storage")
    written = read_manifest(backup)
    newer = BackedUpRevision(name="engine_9999", branch="engine", oldest_release=None)
    written.model_copy(update={"revisions": [*written.revisions, newer]}).write(backup)
    refused = await new.run("restore", backup)
    assert refused.code == 1
    assert "engine_9999" in refused.err
    assert await is_untouched(new)

    older = await _older_backup(new, tmp_path / "backups" / "waybill-2026-01-01T00-00-00Z")
    ran = await new.run("restore", older, "--replace")
    assert ran.code == 0, ran.out + ran.err
    assert "migrated to this release" in ran.out
    connection = await asyncpg.connect(new.url)
    assert {one.name for one in written.revisions} == (await current(connection)).applied.keys()
    await connection.close()


async def _older_backup(place: Place, backup: Path) -> Path:
    """A backup without the storage, as a release made it that knew fewer revisions."""
    backup.mkdir(parents=True)
    await upgrade(place.url, ["convert_0001"])
    connection = await asyncpg.connect(place.url)
    applied = (await current(connection)).applied.values()
    now, version = await connection.fetchval("SELECT now()"), connection.get_server_version().major
    await connection.close()
    program = program_for("pg_dump", version)
    await dump(program, DatabaseUrl(place.url), backup / DUMP)
    Manifest(
        format=FORMAT,
        release="0.1.0",
        started_at=now,
        finished_at=now,
        postgres=version,
        dumped_by=program.version,
        revisions=[
            BackedUpRevision(name=one.name, branch=one.branch, oldest_release=one.oldest_release) for one in applied
        ],
        database=HashedFile.of(backup / DUMP),
        objects=None,
        withdrawals=Withdrawals(known_until=now, erasures=[], revoked_keys=[]),
    ).write(backup)
    return backup


async def test_a_bucket_is_backed_up_and_restored_into_another(
    old: Place, bare: Waybill, empty_database_url: str, hot: Connection
) -> None:
    job = await document(hot, old.storage)
    with s3_server() as server:
        here, there = Bucket(server), Bucket(server)
        async for one in old.storage.list():
            await here.storage(prefix="").put(one.key, old.storage.stream(one.key))
        access = {"WAYBILL_STORAGE_KEY_ID": KEY_ID, "WAYBILL_STORAGE_SECRET": SECRET}
        urls = [f"s3://{bucket.name}?endpoint={server}&region=us-east-1" for bucket in (here, there)]
        made = await bare(
            "backup", "--to", "b", "--json", WAYBILL_DATABASE_URL=old.url, WAYBILL_STORAGE_URL=urls[0], **access
        )
        assert made.code == 0, made.err
        backup = made.json["backup"]
        ran = await bare(
            "restore", backup, WAYBILL_DATABASE_URL=empty_database_url, WAYBILL_STORAGE_URL=urls[1], **access
        )
        assert ran.code == 0, ran.err
        assert await there.storage(prefix="").get(result_key(job, 1, "xml")) == b"<a/>"
        assert sorted(there.objects()) == sorted(here.objects())


async def test_the_password_is_not_on_the_command_line_of_pg_dump(tmp_path: Path) -> None:
    spy = tmp_path / "spy"
    spy.write_text('#!/bin/sh\necho "$@" > arguments\nexit 1\n')
    spy.chmod(0o700)
    url = DatabaseUrl("postgresql://me:s3cret@127.0.0.1:1/db")
    with pytest.raises(PostgresProgramFailed):
        await dump(PostgresProgram(spy, 18), url, tmp_path / "x")
    assert "s3cret" not in (tmp_path / "arguments").read_text()
    assert "postgresql://me@127.0.0.1:1/db" in (tmp_path / "arguments").read_text()


def test_a_missing_program_is_named_with_its_version() -> None:
    with pytest.raises(Refused, match=r"pg_dump of Postgres 99 .* postgresql-client-99"):
        program_for("pg_dump", 99)


async def test_a_pooler_is_refused_with_what_to_set(bare: Waybill, database_url: str) -> None:
    ran = await bare("backup", "--to", "x", WAYBILL_DATABASE_URL=database_url, WAYBILL_DATABASE_PGBOUNCER="true")
    assert ran.code == 1
    assert "WAYBILL_DATABASE_PGBOUNCER=false" in ran.err


async def test_two_backups_into_one_folder_wait_for_each_other(old: Place, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    lock = take_lock(tmp_path / "backups" / ".lock")
    refused = await old.run("backup", "--to", "backups")
    os.close(lock)
    assert refused.code == 1
    assert f"process {os.getpid()}" in refused.err
