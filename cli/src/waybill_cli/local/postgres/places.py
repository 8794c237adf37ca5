"""Where data and programs lie. An ordinary user keeps all of it in the home folder and never needs this.

As root the server runs as another user, who often cannot enter the home folder (its own home, say). That folder
stays closed: what the server must reach goes to a folder that only root can change.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from waybill_cli.local.postgres.errors import PostgresError

_STATE = Path("/var/lib/waybill")


def data_place(home: Path) -> Path:
    """The folder that holds (or will hold) this home's data directory."""
    place = home / "postgres"
    if os.geteuid() != 0 or (place / "data").exists() or reachable_by_all(home):
        return place
    # The home remembers a name, not a path: whoever can write there must not direct root elsewhere. A random
    # name rather than the home's path, so that a moved clone keeps its data and a new clone starts empty.
    note = place / "place"
    if not note.exists():
        note.write_text(secrets.token_hex(8) + "\n")
    name = note.read_text().strip()
    if not re.fullmatch(r"[0-9a-f]{16}", name):
        raise PostgresError(f"{note} is damaged. Remove it to start with an empty database.")
    elsewhere = state_folder("data") / name
    elsewhere.mkdir(mode=0o700, exist_ok=True)
    (elsewhere / "home").write_text(f"{home}\n")  # for whoever wonders whose data this is
    return elsewhere


def state_folder(name: str) -> Path:
    """A folder everyone may enter and only root may change; made when missing."""
    for folder in (_STATE, _STATE / name):
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise PostgresError(
                f"Postgres cannot run as root, and {folder} for its files cannot be made ({error.strerror}). "
                "Run as an ordinary user, or set WAYBILL_DATABASE_URL to a Postgres server."
            ) from error
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
            raise PostgresError(
                f"{folder} must be a folder that only root can change. Look at who made it, then remove it."
            )
        if found.st_mode & 0o755 != 0o755:  # a strict umask; ours, so ours to open
            folder.chmod(0o755)
    return _STATE / name


def reachable_by_all(folder: Path) -> bool:
    """Whether every user may pass through `folder` and all folders above it."""
    folder = folder.resolve()
    return all(each.stat().st_mode & stat.S_IXOTH for each in (folder, *folder.parents))
