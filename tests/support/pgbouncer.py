"""Runs a real PgBouncer in transaction mode in front of a test's database."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from support.child_processes import dying_with_us, free_port
from support.patience import wait_until

_CONFIG = """
[databases]
* = host={host} port={port} user={user} password={password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
logfile = {folder}/pgbouncer.log
{more}
"""


def installed() -> bool:
    return _program() is not None


def _program() -> str | None:
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def pgbouncer(database_url: str, more: str = "") -> Iterator[str]:
    """The URL of the same database, through the pooler. `more` are lines for its configuration."""
    program = _program()
    assert program is not None
    parts = urlsplit(database_url)
    listen = free_port()
    with tempfile.TemporaryDirectory(prefix="waybill-bouncer-") as name:
        folder = Path(name)
        (folder / "pgbouncer.ini").write_text(
            _CONFIG.format(
                host=parts.hostname,
                port=parts.port,
                user=parts.username,
                password=parts.password,
                listen=listen,
                folder=folder,
                more=more,
            )
        )
        account: dict[str, int] = {}
        if os.geteuid() == 0:  # PgBouncer refuses to run as root
            account = {"user": 65534, "group": 65534}
            for path in (folder, folder / "pgbouncer.ini"):
                os.chown(path, 65534, 65534)
        process = subprocess.Popen(
            dying_with_us([program, "-q", str(folder / "pgbouncer.ini")]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **account,  # type: ignore[call-overload]
        )
        try:
            _wait_for(listen, process)
            yield urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{listen}"))
        finally:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    def answers() -> bool:
        assert process.poll() is None, "pgbouncer did not start"
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        return False

    wait_until(answers, "an answer of pgbouncer")
