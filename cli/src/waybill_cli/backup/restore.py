"""`waybill restore`: a backup becomes the database and the storage, in this place or in another one."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from waybill import audit, log
from waybill.config import CommonSettings
from waybill.console.exits import ExitCode
from waybill.console.human_units import counted, size
from waybill.console.terminal import complain, print_line, remark
from waybill.db import Database
from waybill.db.database import Connection
from waybill.db.migrations import upgrade
from waybill.db.revisions import revisions
from waybill.db.schema import applied_schema, refuse_incompatible
from waybill.db.startup import wait_for_postgres
from waybill.errors import Refused
from waybill.pipelines import brought
from waybill.storage import service_storage, storage_of
from waybill_cli.backup import restored_database
from waybill_cli.backup.backup_folder import backups_in
from waybill_cli.backup.database_dump import refuse_pooler, undump
from waybill_cli.backup.manifest import DUMP, Manifest, damage, read_manifest
from waybill_cli.backup.postgres_programs import program_for
from waybill_cli.backup.storage_copy import Kept, copy_back, refuse_foreign
from waybill_cli.backup.withdrawals import Withdrawals, erase_again, read_withdrawals, together, withdraw
from waybill_cli.local.own_database import database_settings
from waybill_engine import register_kinds
from waybill_engine.rescue import release_all

_JANITOR = "waybill_janitor"


@dataclass(slots=True)
class Restored:
    """What a person needs to know afterwards."""

    manifest: Manifest
    kept: Kept
    migrated: bool = False
    released: int = 0
    erased: int = 0
    erasures_left: int = 0
    revoked: int = 0
    withdrawals_known_until: datetime | None = None


def restore(
    path: Annotated[Path, typer.Argument(metavar="BACKUP", help="The folder of one backup.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Drop what is in the database now. Without it, it must be empty.")
    ] = False,
) -> None:
    """Restore a backup into the configured database and storage, and check the result.

    All services must be stopped; with `make up` that means Ctrl-C there, and the database is started for you. The
    backup is verified before anything is touched, and if anything fails, the database is as it was before. An older
    backup is migrated. What was erased or revoked after the backup was made is erased and revoked again, as far as
    newer backups beside it, or the replaced database, know of it.
    """
    path = path.absolute()
    written = read_manifest(path)
    _refuse_newer(written)
    remark(f"Verifying {path} …")
    if wrong := asyncio.run(damage(path, written)):
        for line in wrong[:20]:
            complain(line)
        raise Refused(f"{path} is damaged, so nothing was restored. Use another backup.")
    with database_settings(alone=True) as settings:
        log.configure(settings.model_copy(update={"log_level": "error", "log_file": None}), service="cli")
        done = asyncio.run(_restore(settings, path, written, replace=replace))
        _tell(done, settings)
        good = _check_storage(settings)
    _tell_rest(done)
    if not good:
        raise typer.Exit(ExitCode.REFUSED)


def _refuse_newer(written: Manifest) -> None:
    known = revisions()
    refuse_incompatible(applied_schema((one.name, one.branch, one.oldest_release) for one in written.revisions))
    if unknown := sorted(one.name for one in written.revisions if one.name not in known):
        raise Refused(
            f"This backup was made by release {written.release}, whose schema is newer than this program's: it has "
            f"{', '.join(unknown)}. Restore it with that release, or install the pipelines that it had."
        )


async def _restore(settings: CommonSettings, path: Path, written: Manifest, *, replace: bool) -> Restored:
    refuse_pooler(settings)
    for kinds in brought("kinds"):
        register_kinds(kinds)  # a listener of what ends or is removed may enqueue jobs of another pipeline
    # Not `connect`, which refuses a database that an interrupted restore has left: we are here to mend that.
    database = Database(settings.database_url, name=restored_database.NAME, hot_size=2)
    try:
        await wait_for_postgres(database.greet, database.url, settings.database_connect_timeout)
        connection = await database.open_connection()
        try:
            with audit.acting_as(audit.command_actor()):
                return await _with_connection(settings, database, connection, path, written, replace=replace)
        finally:
            await connection.close()
    finally:
        await database.close()


async def _with_connection(
    settings: CommonSettings,
    database: Database,
    connection: Connection,
    path: Path,
    written: Manifest,
    *,
    replace: bool,
) -> Restored:
    server = connection.get_server_version().major
    if server < written.postgres:
        raise Refused(
            f"The backup is of Postgres {written.postgres}, and this server is older ({server}). Use a newer one."
        )
    program = program_for("pg_restore", written.dumped_by)
    await restored_database.refuse_company(connection)
    await restored_database.undo_killed_restore(connection)
    full = await restored_database.refuse_full(connection, replace=replace)
    replaced = await read_withdrawals(connection) if full else None
    done = Restored(written, Kept())
    if written.objects is not None:
        # The storage first: as long as it is incomplete, the database is as it was.
        storage = storage_of(settings)
        mark = await restored_database.mark_of_replaced(connection) if full else None
        await refuse_foreign(storage, written.mark, mark)
        remark(f"Putting back {counted(written.object_count, 'object')} …")
        done.kept = await copy_back(path, storage)
    remark("Restoring the database …")
    withdrawn = together([*_newer(path, written), *([replaced] if replaced else [])])
    async with restored_database.replaced_schema(connection):
        await undump(program, settings.database_url, path / DUMP)
        done.migrated = bool(revisions().keys() - {one.name for one in written.revisions})
        await upgrade(settings.database_url.url)
        async with connection.transaction():
            await restored_database.settle(connection)
            done.released = len(await release_all(connection))
            begun, done.revoked = await withdraw(connection, withdrawn)
            await audit.record(
                connection, "database.restored", f"backup:{path.name}", detail={"made": f"{written.started_at:%FT%TZ}"}
            )
    done.withdrawals_known_until = withdrawn.known_until
    await connection.execute("ANALYZE")
    left = await erase_again(database, service_storage(settings, database), brought("erasure"), begun)
    done.erased, done.erasures_left = len(begun) - len(left), len(left)
    return done


def _newer(path: Path, written: Manifest) -> Sequence[Withdrawals]:
    """What this backup and the newer ones beside it know. A damaged one is no reason not to restore another."""
    found = [written.withdrawals]
    for other in backups_in(path.parent):
        try:
            manifest = read_manifest(other)
        except Refused as error:
            complain(f"{error.message} What was erased or revoked before it was made may come back.")
            continue
        if manifest.started_at > written.started_at:
            found.append(manifest.withdrawals)
    return found


def _tell(done: Restored, settings: CommonSettings) -> None:
    written = done.manifest
    print_line(f"Restored the backup of {written.started_at:%Y-%m-%d %H:%M:%S} UTC (release {written.release}).")
    print_line(f"  database   {settings.database_url}{', migrated to this release' if done.migrated else ''}")
    if written.objects is None:
        print_line("  storage    not in this backup: WAYBILL_STORAGE_URL must name a copy of it")
    else:
        print_line(
            f"  storage    {settings.storage_url}: {counted(done.kept.copied, 'object')} put back, "
            f"{done.kept.shared:,} were there already ({size(done.kept.bytes)} in all)"
        )
    print_line(f"  jobs       {done.released:,} were running then; they are queued again, and none is charged")
    if done.erased or done.erasures_left:
        print_line(f"  erasures   {done.erased:,} of later than the backup were done again")
    if done.erasures_left:
        print_line(f"             {done.erasures_left:,} could not be finished (a legal hold?); the janitor goes on")
    if done.revoked:
        print_line(f"  keys       {done.revoked:,} that were revoked later are revoked again")


def _check_storage(settings: CommonSettings) -> bool:
    """Compare all of the storage with all rows, and say what was found; False if it could not be done."""
    if importlib.util.find_spec(_JANITOR) is None:
        print_line(
            "  check      not looked: the janitor is not installed here. Run: waybill janitor run --dry-run --all"
        )
        return True
    environment = {
        **os.environ,
        "WAYBILL_DATABASE_URL": settings.database_url.url,
        "WAYBILL_HOME": str(settings.home.absolute()),
        "WAYBILL_LOG_LEVEL": "error",
    }
    command = [sys.executable, "-m", _JANITOR, "--dry-run", "--all", "--json"]
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    try:
        tasks: dict[str, Any] = {one["task"]: one for one in json.loads(ended.stdout)["tasks"]}
        missing, orphans = tasks["missing"], tasks["orphans"]
    except (ValueError, KeyError):
        complain("The storage was not compared with the database. Run: waybill janitor run --dry-run --all")
        return False
    wrong = [one["error"] for one in (missing, orphans) if one["outcome"] != "done" or not one["looked"]]
    if wrong:
        complain(
            f"The storage was not compared with the database: {wrong[0]} Mend that, then run: waybill janitor run --all"
        )
        return False
    if missing["planned"]:
        print_line(
            f"  check      looked at everything: {missing['planned']:,} objects are missing. They were removed while "
            "the backup was made, or the storage is not whole. Their jobs will show as expired."
        )
    else:
        print_line("  check      looked at everything: every object that a row names is there")
    if orphans["planned"]:
        print_line(
            f"             {orphans['planned']:,} objects belong to no row: they were stored after the backup was "
            "made. Copy what you want to keep before the janitor removes them (WAYBILL_ORPHAN_GRACE)."
        )
    return True


def _tell_rest(done: Restored) -> None:
    since = f"{done.manifest.started_at:%Y-%m-%d %H:%M:%S} UTC"
    until = f"{done.withdrawals_known_until:%Y-%m-%d %H:%M:%S} UTC"
    print_line("What you should know:")
    print_line(f"  - What came in, was corrected or was decided after {since} is not there.")
    print_line(
        f"  - Erasures and revoked keys are known up to {until}. Repeat those that came later: waybill tenant erase."
    )
    print_line("  - Browsers that signed out since the backup are signed in again until their cookies expire.")
    print_line("  - What is past its retention goes with the janitor's next run.")
    print_line("Now start the services (`make up`).")
