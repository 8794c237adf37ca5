"""A dump and a copy that were taken and restored without our commands: the janitor notices, and all is there.

`waybill backup` and `waybill restore` are tested in `tests/cli/test_backup.py`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import asyncpg

from support.janitor import DAY, document, janitor, named_keys, result_key, status, stored_keys
from waybill.config import DatabaseUrl
from waybill.db import Database
from waybill.db.database import Connection
from waybill.storage import LocalStorage
from waybill_cli.local.postgres import bundled_binaries


def run(program: str, *arguments: str) -> None:
    """One of Postgres's own programs, of the newest version there is: it reads all older ones."""
    subprocess.run([bundled_binaries(18) / program, *arguments], check=True)


async def test_a_dump_taken_while_work_goes_on_is_restored_whole(
    database_url: str, empty_database_url: str, db: Database, hot: Connection, tmp_path: Path
) -> None:
    storage = LocalStorage(tmp_path / "storage")
    jobs = [await document(hot, storage, state) for state in ("succeeded", "succeeded", "failed", "queued")]
    # It has compared everything just now, and would not look again for a day. The dump contains that.
    await janitor(db, storage, janitor_scan_interval=DAY).clean()

    # The database first, then the storage: what the dump names is in the copy, unless it was deleted in between.
    dump = tmp_path / "waybill.dump"
    run("pg_dump", "--format=custom", "--schema=public", f"--file={dump}", database_url)
    late = await document(hot, storage)
    await storage.delete(result_key(jobs[1], 1, "xml"))
    shutil.copytree(tmp_path / "storage", tmp_path / "copy")

    connection = await asyncpg.connect(empty_database_url)
    await connection.execute("DROP SCHEMA public CASCADE")
    run("pg_restore", "--no-owner", "--exit-on-error", f"--dbname={empty_database_url}", str(dump))
    await connection.execute("UPDATE conversions SET changed = pg_current_xact_id()")
    restored, copy = Database(DatabaseUrl(empty_database_url)), LocalStorage(tmp_path / "copy")
    try:
        await restored.check_schema()
        # The janitor says what the backup lost, and takes nothing that may still be wanted.
        done = await janitor(restored, copy, janitor_scan_interval=DAY).clean()
        assert done["missing"] == {"marked": 1}
        assert [await status(connection, job) for job in jobs] == ["complete", "expired", "failed", "queued"]
        assert await status(connection, late) is None
        assert await named_keys(connection) <= await stored_keys(copy)
        assert await copy.exists(result_key(late, 1, "xml")), "what came after the dump is kept for the grace period"
        for row in await connection.fetch("SELECT storage_key FROM job_artefacts WHERE missing_at IS NULL"):
            assert await copy.get(row["storage_key"]) == b"<a/>"
    finally:
        await connection.close()
        await restored.close()
