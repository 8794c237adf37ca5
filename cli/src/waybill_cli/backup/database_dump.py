"""The database's half of a backup: Postgres's own programs, told where the database is without showing its password."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from waybill.config import CommonSettings, DatabaseUrl
from waybill.errors import Refused, WaybillError
from waybill_cli.backup.postgres_programs import PostgresProgram


class PostgresProgramFailed(WaybillError):
    """`pg_dump` or `pg_restore` ended with an error, which the message quotes."""


def refuse_pooler(settings: CommonSettings) -> None:
    if settings.database_pgbouncer:
        raise Refused(
            "pg_dump and pg_restore need sessions of their own, which PgBouncer in transaction mode does not give. Run "
            "this with the WAYBILL_DATABASE_URL of Postgres itself, and WAYBILL_DATABASE_PGBOUNCER=false."
        )


async def dump(program: PostgresProgram, url: DatabaseUrl, target: Path) -> None:
    # What is in unlogged tables is lost with every crash, and nobody minds.
    options = ["--format=custom", "--schema=public", "--no-unlogged-table-data", f"--file={target}"]
    await _run(program, url, options)


async def undump(program: PostgresProgram, url: DatabaseUrl, source: Path) -> None:
    """Put the dump's schema `public` into a database that has none, all of it or nothing."""
    options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", str(source)]
    await _run(program, url, options)


async def check_dump(program: PostgresProgram, source: Path) -> None:
    """Raise unless the program can read the dump's table of contents."""
    await _finish(program, [str(program.path), "--list", str(source)], dict(os.environ))


async def _run(program: PostgresProgram, url: DatabaseUrl, options: list[str]) -> None:
    parts = urlsplit(url.asyncpg)
    userinfo, at, hosts = parts.netloc.rpartition("@")
    user, _, password = userinfo.partition(":")
    shown = urlunsplit(parts._replace(netloc=f"{user}{at}{hosts}"))  # others can see the command line
    environment = {**os.environ, "PGAPPNAME": f"waybill {program.path.name}"}
    if password:
        environment["PGPASSWORD"] = unquote(password)
    await _finish(program, [str(program.path), f"--dbname={shown}", "--no-password", *options], environment)


async def _finish(program: PostgresProgram, command: list[str], environment: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        umask=0o077,
    )
    try:
        _, said = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise PostgresProgramFailed(
            f"{program.path.name} {program.version} failed: {said.decode(errors='replace').strip()[-2000:]}"
        )
