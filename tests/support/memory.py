"""How much memory processes use, as Linux counts it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


def tree_of(pid: int) -> Iterator[int]:
    """A process and all below it."""
    pids = [pid]
    while pids:
        each = pids.pop()
        yield each
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())


def proportional(pid: int) -> float:
    """Megabytes of a process; what it shares with others is divided among them. 0 if it is gone."""
    with contextlib.suppress(OSError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024
    return 0.0


def resident(pid: int) -> float:
    """Megabytes of a process and all below it, without counting twice what they share."""
    return sum(proportional(each) for each in tree_of(pid))
