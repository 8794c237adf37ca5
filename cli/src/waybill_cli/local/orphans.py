"""Ends processes that a killed `waybill up` left behind. It finds them by a variable in their environment.

The kernel already kills each service together with its starter (see `tether`); this finds what the services started
themselves. The caller holds the home's lock, so any marked process is an orphan.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "WAYBILL_SUPERVISED"
"""The variable that marks a process. Its value is the home folder."""


def end_orphans(home: Path, patience: float = 10.0) -> list[int]:
    """Kill every process marked with this home, and wait until they are gone. Returns their pids."""
    ended: set[int] = set()
    deadline = time.monotonic() + patience
    while (marked := _marked(home)) and time.monotonic() < deadline:
        for pid in marked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended.update(marked)
        time.sleep(0.02)
    return sorted(ended)


def _marked(home: Path) -> list[int]:
    """This works on Linux only. Other systems have no /proc; there, a leftover service shows up as a taken port."""
    mark = f"{MARK}={home}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # The environment of zombies and of other users' processes cannot be read.
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                found.append(int(process.name))
    return found
