"""Where data and programs are kept. For ordinary users, that is always the home folder.

For root, the server runs as another user who often cannot enter the home folder. We leave that folder closed and put
what the server needs into a folder that only root can change.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from waybill_cli.local.postgres.errors import PostgresError

_STATE = Path("/var/lib/waybill")


def data_place(home: Path) -> Path:
    """The folder that contains, or will contain, this home's data directory."""
    place = home / "postgres"
    if os.geteuid() != 0 or (place / "data").exists() or reachable_by_all(home):
        return place
    # The home stores a name and not a path, because whoever can write there must not redirect root. The name is random
    # and not the home's path, so that a moved clone keeps its data and a new clone starts empty.
    note = place / "place"
    if not note.exists():
        note.write_text(secrets.token_hex(8) + "\n")
    name = note.read_text().strip()
    if not re.fullmatch(r"[0-9a-f]{16}", name):
        raise PostgresError(f"{note} is damaged. Remove it to start with an empty database.")
    elsewhere = state_folder("data") / name
    elsewhere.mkdir(mode=0o700, exist_ok=True)
    (elsewhere / "home").write_text(f"{home}\n")  # so that people can tell whose data this is
    return elsewhere


def state_folder(name: str) -> Path:
    """A folder that everyone may enter and only root may change. It is created if it is missing."""
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
                f"{folder} must be a folder that only root can change. Check who created it, then remove it."
            )
        if found.st_mode & 0o755 != 0o755:  # root has a strict umask
            folder.chmod(0o755)
    return _STATE / name


def reachable_by_all(folder: Path) -> bool:
    """Whether every user may enter `folder` and all folders above it."""
    folder = folder.resolve()
    return all(each.stat().st_mode & stat.S_IXOTH for each in (folder, *folder.parents))


@dataclass(frozen=True, slots=True)
class LeftData:
    """Data of a home that is gone, or has other data now."""

    home: str
    place: Path
    bytes: int


def left_data() -> list[LeftData]:
    """The databases under /var/lib/waybill that nobody will start again. Removing a home does not remove them."""
    found = []
    if os.geteuid() == 0 and (_STATE / "data").is_dir():
        for place in sorted((_STATE / "data").iterdir()):
            with contextlib.suppress(OSError):
                home = (place / "home").read_text().strip()
                if not _belongs_to(place, Path(home)):
                    found.append(LeftData(home, place, _size(place)))
    return found


def _belongs_to(place: Path, home: Path) -> bool:
    with contextlib.suppress(OSError):
        return (home / "postgres" / "place").read_text().strip() == place.name
    return False


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total
