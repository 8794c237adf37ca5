"""A pipeline from outside whose revisions a test writes, and a process that migrates with it installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_MIGRATE = """
import asyncio, logging, sys
from waybill import log
from waybill.config import ProcessSettings
from waybill.db.migrations import upgrade
from waybill.errors import WaybillError

log.configure(ProcessSettings(log_format="console"), service="cli")
try:
    asyncio.run(upgrade(sys.argv[1], patience=float(sys.argv[2])))
except WaybillError as error:
    sys.exit(error.message)
"""

_REVISION = """
from waybill.db.migrations.statements import create_index, execute

revision = "extra_{number:04}"
down_revision = {follows!r}
branch_labels = {labels!r}
depends_on = {depends_on!r}
oldest_release = {oldest_release!r}


def upgrade() -> None:
    {body}
"""


class ExtraBranch:
    """What `pip install` leaves of a package `waybill-extra` that brings a branch."""

    def __init__(self, folder: Path, *, release: str = "1.0") -> None:
        self.folder = folder
        self._revisions = 0
        self._package = folder / "waybill_extra" / "migrations"
        self._package.mkdir(parents=True)
        (self._package / "__init__.py").touch()
        (self._package.parent / "__init__.py").write_text(
            "from waybill.pipelines import Pipeline\n"
            "PIPELINE = Pipeline(name='extra', migrations='waybill_extra.migrations')\n"
        )
        facts = folder / f"waybill_extra-{release}.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: waybill-extra\nVersion: {release}\n")
        (facts / "entry_points.txt").write_text("[waybill.pipelines]\nextra = waybill_extra:PIPELINE\n")

    def add(self, body: str, *, oldest_release: str | None = None) -> None:
        """Add a revision whose `upgrade` does this."""
        self._revisions += 1
        first = self._revisions == 1
        text = _REVISION.format(
            number=self._revisions,
            follows=None if first else f"extra_{self._revisions - 1:04}",
            labels=("extra",) if first else None,
            depends_on=("engine_0001",) if first else None,
            oldest_release=oldest_release,
            body=body,
        )
        (self._package / f"{self._revisions:04}.py").write_text(text)

    def start(self, url: str, *, patience: float = 60) -> subprocess.Popen[str]:
        """Start migrating."""
        return subprocess.Popen(
            [sys.executable, "-c", _MIGRATE, url, str(patience)],
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def migrate(self, url: str, *, patience: float = 60) -> tuple[int, str]:
        """Migrate; the exit code and what was said."""
        running = self.start(url, patience=patience)
        said, _ = running.communicate()
        return running.returncode, said
