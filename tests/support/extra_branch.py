"""A pipeline from outside whose revisions a test writes, and a process that migrates with it installed."""

from __future__ import annotations

from pathlib import Path

from support.forked import Forked

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

    def start(self, url: str, *, patience: float = 60) -> Forked:
        """Start migrating."""
        arguments = ("support.branch_migration", url, str(patience))
        return Forked(*arguments, folder=self.folder, PYTHONPATH=str(self.folder))

    def migrate(self, url: str, *, patience: float = 60) -> tuple[int, str]:
        """Migrate; the exit code and what was said."""
        return self.start(url, patience=patience).ended()
