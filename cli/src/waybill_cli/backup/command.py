"""`waybill backup`: the database and the storage, while everything runs. `backup verify` reads a backup again."""

from __future__ import annotations

import asyncio
import importlib.metadata
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from waybill import log
from waybill.config import CommonSettings
from waybill.console.exits import ExitCode
from waybill.console.human_units import counted, size
from waybill.console.options import AsJson
from waybill.console.terminal import complain, print_json, print_line
from waybill.db import Database
from waybill.db.schema import current
from waybill.errors import Refused
from waybill.storage import service_storage
from waybill.storage.owner_mark import mark_of
from waybill_cli.backup import manifest as manifests
from waybill_cli.backup.backup_folder import OBJECTS, new_backup, newest_with_objects, remove_all_but
from waybill_cli.backup.database_dump import check_dump, dump, refuse_pooler
from waybill_cli.backup.manifest import DUMP, FORMAT, BackedUpRevision, HashedFile, Manifest
from waybill_cli.backup.postgres_programs import PostgresProgram, program_for
from waybill_cli.backup.storage_copy import Kept, copy_out
from waybill_cli.backup.withdrawals import read_withdrawals
from waybill_cli.local.own_database import database_settings

app = typer.Typer(rich_markup_mode=None)

NAME = "waybill backup"


@app.callback(invoke_without_command=True)
def backup(
    context: typer.Context,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Where backups are kept; this one gets its own folder."),
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=1, help="Afterwards remove all but the newest N in FOLDER.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Copy every object again, instead of sharing those of the last backup.")
    ] = False,
    without_storage: Annotated[
        bool, typer.Option("--without-storage", help="Only the database: the storage is backed up by other means.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Back up the database and the storage into FOLDER, while everything runs. Made for cron: it asks nothing.

    The backup is complete, or it is not there. Objects that the last backup in FOLDER has already are hard links, so
    another backup costs only what is new. It contains secrets and documents: keep it like a password.
    """
    if context.invoked_subcommand is not None:
        return
    if to is None:
        raise typer.BadParameter("is missing: say where backups are kept", param_hint="--to")
    folder = to.absolute()
    with database_settings(alone=False) as settings:
        log.configure(settings.model_copy(update={"log_level": "warning", "log_file": None}), service="cli")
        made, written, kept = asyncio.run(_back_up(settings, folder, full=full, storage=not without_storage))
    removed = remove_all_but(folder, keep) if keep else []
    if as_json:
        print_json(
            {
                "backup": str(made),
                "database_bytes": written.database.bytes,
                "objects": kept.objects,
                "object_bytes": kept.bytes,
                "copied": kept.copied,
                "shared": kept.shared,
                "gone": kept.gone,
                "removed": [str(path) for path in removed],
            }
        )
        return
    objects = "without the storage"
    if written.objects is not None:
        shared = f", {kept.shared:,} of them shared with the last backup" if kept.shared else ""
        objects = f"{counted(kept.objects, 'object')} ({size(kept.bytes)}{shared})"
    print_line(f"{made}: the database ({size(written.database.bytes)}), {objects}.")
    if kept.gone:
        print_line(f"{counted(kept.gone, 'object was', 'objects were')} deleted meanwhile.")
    for path in removed:
        print_line(f"Removed {path}.")


@app.command()
def verify(path: Annotated[Path, typer.Argument(metavar="BACKUP", help="The folder of one backup.")]) -> None:
    """Read all of a backup again, and compare it with the hashes in its manifest. Exits with 1 if anything differs."""
    written = manifests.read_manifest(path)
    with_program = program_for("pg_restore", written.dumped_by)

    async def look() -> list[str]:
        found = await manifests.damage(path, written)
        if not found:
            await check_dump(with_program, path / DUMP)
        return found

    wrong = asyncio.run(look())
    for line in wrong[:20]:
        complain(line)
    if wrong:
        complain(
            f"{counted(len(wrong), 'file')} of {path} cannot be relied on. Use another backup, and make a new one."
        )
        raise typer.Exit(ExitCode.REFUSED)
    objects = (
        f"{counted(written.object_count, 'object')} ({size(written.object_bytes)})"
        if written.objects
        else "no storage in it"
    )
    print_line(
        f"{path} is whole: release {written.release}, {written.started_at:%Y-%m-%d %H:%M:%S} UTC, the database "
        f"({size(written.database.bytes)}), {objects}."
    )


async def _back_up(settings: CommonSettings, folder: Path, *, full: bool, storage: bool) -> tuple[Path, Manifest, Kept]:
    refuse_pooler(settings)
    database = await Database.connect(settings, name=NAME)
    try:
        program = await _program(database)
        started_at = datetime.now(UTC)
        earlier = None if full else newest_with_objects(folder)
        kept = Kept()
        with new_backup(folder, started_at) as half:
            written = await _write(database, settings, program, half, earlier if storage else None, kept, storage)
            written.write(half)
            name = half.name.removeprefix(".half-")
        return folder / name, written, kept
    finally:
        await database.close()


async def _write(
    database: Database,
    settings: CommonSettings,
    program: PostgresProgram,
    half: Path,
    earlier: Path | None,
    kept: Kept,
    with_storage: bool,
) -> Manifest:
    # The database first. An object is stored before the row that names it, so a copy of the storage that begins after
    # the dump has everything that the dump names, except for what was removed in between on purpose.
    async with database.hot() as connection:
        started_at = await connection.fetchval("SELECT now()")
        revisions = (await current(connection)).applied
        postgres = connection.get_server_version().major
    await dump(program, settings.database_url, half / DUMP)
    mark = None
    if with_storage:
        place = service_storage(settings, database)  # refuses a folder that is not mounted, or not ours
        done = await copy_out(place, half, earlier)
        kept.copied, kept.shared, kept.bytes, kept.gone = done.copied, done.shared, done.bytes, done.gone
        found = await mark_of(place)
        mark = found.decode() if found else None
    async with database.hot() as connection:
        withdrawals = await read_withdrawals(connection)
        finished_at = await connection.fetchval("SELECT now()")
        if (await current(connection)).applied.keys() != revisions.keys():
            raise Refused(
                "The database was migrated while it was backed up, so this backup is of no use. Run it again."
            )
    assert withdrawals is not None, "Database.connect has checked the schema"  # noqa: S101
    return Manifest(
        format=FORMAT,
        release=importlib.metadata.version("waybill-cli"),
        started_at=started_at,
        finished_at=finished_at,
        postgres=postgres,
        dumped_by=program.version,
        revisions=[
            BackedUpRevision(name=one.name, branch=one.branch, oldest_release=one.oldest_release)
            for one in revisions.values()
        ],
        database=HashedFile.of(half / DUMP),
        objects=HashedFile.of(half / OBJECTS) if with_storage else None,
        object_count=kept.objects,
        object_bytes=kept.bytes,
        mark=mark,
        withdrawals=withdrawals,
    )


async def _program(database: Database) -> PostgresProgram:
    async with database.hot() as connection:
        return program_for("pg_dump", connection.get_server_version().major)
