"""Long work in steps: between two of them whoever drives it waits a moment, looks around, or gives up.

A supervisor that waits for Postgres must hear Ctrl-C meanwhile, and must not start it from another thread, because the
kernel ties a process to the thread that starts it (see `tether`). So starting is a generator: `take` drives it for
whoever has nothing else to do, and an event loop can drive it, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

PAUSE = 0.01
"""Seconds between two steps."""


def take(steps: Iterator[None]) -> None:
    """Take all steps, and wait in between."""
    for _ in steps:
        time.sleep(PAUSE)
