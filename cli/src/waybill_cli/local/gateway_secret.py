"""The secret that the gateway of `waybill up` shares with the other services. They find it in the home folder."""

from __future__ import annotations

import secrets
from pathlib import Path

from waybill.config.gateway_secret import FILE_NAME
from waybill.files.private import write_private


def provide(home: Path) -> None:
    """Make the file, if it is not there yet."""
    if not (home / FILE_NAME).exists():
        write_private(home / FILE_NAME, f"{secrets.token_hex(32)}\n")
