"""A file with the database URL of a running `waybill up`, for commands that run beside it."""

from __future__ import annotations

from pathlib import Path

from waybill.files.private import write_private


def publish(home: Path, url: str) -> None:
    """Write the URL, which contains a password, to a file that only its owner may read."""
    write_private(_note(home), url + "\n")


def withdraw(home: Path) -> None:
    """Remove the file."""
    _note(home).unlink(missing_ok=True)


def published_url(home: Path) -> str | None:
    """The URL that the `waybill up` of this home published; None if none runs."""
    try:
        return _note(home).read_text().strip()
    except OSError:
        return None


def _note(home: Path) -> Path:
    return home / "database-url"
