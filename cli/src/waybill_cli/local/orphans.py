"""Finds the processes that a killed `waybill up` left behind, by the mark it puts on all it starts.

The kernel already ends each service with its supervisor (see `tether`); this reaches what services started
themselves. Only called while holding the home's lock: whoever bears its mark then belongs to nobody any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "WAYBILL_SUPERVISED"
"""The variable that marks a process; its value is the home folder."""


def end_orphans(home: Path, patience: float = 10.0) -> list[int]:
    """Kill every process marked with this home and wait until they are gone; returns their pids."""
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
    """Linux only. Elsewhere there is no /proc; a service left over there shows as a taken port."""
    mark = f"{MARK}={home}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # Zombies and processes of other users have no environment to read.
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                found.append(int(process.name))
    return found
