"""A real primary with a real standby, and what happens to both when the standby takes over."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from support.patience import eventually
from support.server import SETTINGS, embedded
from waybill_cli.local.postgres import EmbeddedPostgres, bundled_binaries


@dataclass(frozen=True)
class Pair:
    primary: EmbeddedPostgres
    standby: EmbeddedPostgres

    def url(self, database: str) -> str:
        """Both servers, the primary first: clients look for the one that writes."""
        parts = urlsplit(self.primary.url_of(database))
        return urlunsplit(parts._replace(netloc=f"{parts.netloc},127.0.0.1:{self.standby.port}"))

    async def caught_up(self) -> None:
        """Wait until the standby has everything."""
        primary, standby = await asyncpg.connect(self.primary.url), await asyncpg.connect(self.standby.url)
        wanted = await primary.fetchval("SELECT pg_current_wal_lsn()::text")

        async def is_there() -> bool:
            return bool(await standby.fetchval("SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", wanted))

        await eventually(is_there)
        await primary.close()
        await standby.close()

    async def fail_over(self) -> None:
        """Stop writes on the primary, whose sessions stay open, and let the standby take over."""
        await self.refuse_writes()
        await self.caught_up()
        standby = await asyncpg.connect(self.standby.url)
        assert await standby.fetchval("SELECT pg_promote()")
        await standby.close()

    async def refuse_writes(self, refuse: bool = True) -> None:
        primary = await asyncpg.connect(self.primary.url)
        await primary.execute(f"ALTER SYSTEM SET default_transaction_read_only = {'on' if refuse else 'off'}")
        await primary.execute("SELECT pg_reload_conf()")

        async def is_known() -> bool:
            shown = await primary.fetchval("SHOW default_transaction_read_only")
            return bool(shown == ("on" if refuse else "off"))

        await eventually(is_known)
        await primary.close()


@contextmanager
def replicated() -> Iterator[Pair]:
    with embedded("18") as primary, tempfile.TemporaryDirectory(prefix="waybill-standby-") as folder:
        home = Path(folder)
        home.chmod(0o711)
        kept = home / "postgres"
        kept.mkdir()
        shutil.copy(primary.home / "postgres" / "password", kept / "password")
        program = bundled_binaries(18) / "pg_basebackup"
        arguments = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync", f"--pgdata={kept / 'data'}"]
        subprocess.run([program, f"--dbname={primary.url}", *arguments], check=True, capture_output=True)
        if os.geteuid() == 0:
            owner = primary.data.stat()
            for path in (kept / "data", *(kept / "data").rglob("*")):
                os.chown(path, owner.st_uid, owner.st_gid)
            kept.chmod(0o711)
        standby = EmbeddedPostgres(home, settings={**SETTINGS, "fsync": "off"})
        try:
            standby.start()
            yield Pair(primary, standby)
        finally:
            standby.destroy()
