"""Where the database of a running `waybill up` is, for the commands a person types beside it."""

from __future__ import annotations

from pathlib import Path

from waybill.files.private import write_private


def publish(home: Path, url: str) -> None:
    """Leave the address, which holds a password, in the home folder for its owner alone."""
    write_private(_note(home), url + "\n")


def withdraw(home: Path) -> None:
    """Take the address away again."""
    _note(home).unlink(missing_ok=True)


def published_url(home: Path) -> str | None:
    """The address that the `waybill up` of this home published; None when none runs."""
    try:
        return _note(home).read_text().strip()
    except OSError:
        return None


def _note(home: Path) -> Path:
    return home / "database-url"
