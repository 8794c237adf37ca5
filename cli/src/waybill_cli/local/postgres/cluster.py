"""Creates the server's data directory once, and checks at every start that it fits the server.

`initdb` writes to a temporary folder that is renamed afterwards, so the data directory is complete or absent.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from waybill.files.private import write_private
from waybill_cli.local.postgres.account import Account, named_account
from waybill_cli.local.postgres.errors import PostgresError
from waybill_cli.local.tether import tethered

USER = "waybill"


def ensure_cluster(data: Path, password: Path, binaries: Path, account: Account | None, *, durable: bool) -> None:
    """Create the data directory unless it exists. Refuse one that another version of Postgres wrote."""
    if data.exists():
        _check_version(data, binaries)
        if not password.exists():
            raise PostgresError(
                f"{password} is missing, so nobody can log in to the database in {data}. Put the file back, "
                f"or move {data} away to start with an empty database."
            )
        return
    write_private(password, secrets.token_urlsafe(24) + "\n")
    for abandoned in data.parent.glob("data.new-*"):  # left by a start that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix="data.new-", dir=data.parent))
    password_copy = data.with_name("password.new")  # a place where `initdb` can read it as any user
    try:
        write_private(password_copy, password.read_text())
        runner = named_account(account) if account else None
        if runner:
            _give((fresh, password_copy), runner)
        _initdb(fresh, password_copy, binaries, runner, durable=durable)
        if account:
            _give((fresh, *fresh.rglob("*")), account)
        fresh.rename(data)
    finally:
        password_copy.unlink(missing_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)


def server_environment() -> dict[str, str]:
    """The programs' environment: none of our secrets, and no PG… variable that would redirect them."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _initdb(fresh: Path, password: Path, binaries: Path, runner: Account | None, *, durable: bool) -> None:
    command = [
        str(binaries / "initdb"),
        f"--pgdata={fresh}",
        f"--username={USER}",
        f"--pwfile={password}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--no-locale",  # the same sort order on every machine
        "--no-instructions",
        *([] if durable else ["--no-sync"]),
    ]
    run = subprocess.run(
        tethered(command, on_parent_death=signal.SIGKILL, account=runner),
        cwd="/",
        env=server_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        umask=0o077,
    )
    if run.returncode != 0:
        raise PostgresError(f"Postgres could not create its data directory {fresh}:\n{run.stderr.strip()}")


def _check_version(data: Path, binaries: Path) -> None:
    written_by = (data / "PG_VERSION").read_text().strip()
    answer = subprocess.run(
        [str(binaries / "postgres"), "--version"],
        capture_output=True,
        text=True,
        env=server_environment(),
        check=True,
    )
    ours = answer.stdout.split()[2].split(".")[0]
    if written_by != ours:
        raise PostgresError(
            f"The database in {data} was written by Postgres {written_by}, and this is Postgres {ours}. "
            "Start the old version and copy the data with pg_dump, or move the folder away to start with an "
            "empty database."
        )


def _give(paths: tuple[Path, ...], account: Account) -> None:
    for path in paths:
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
