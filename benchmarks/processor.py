"""How long processes have run. Unlike the clock on the wall, it hardly minds what else the machine is doing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil


def seconds_of(pid: int) -> float:
    """Processor time of a process and of all below it, threads and ended children included."""
    total = 0.0
    for process in _tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(process).cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def nanoseconds_of_each(pid: int) -> dict[int, int]:
    """The same to the nanosecond, by process, for processes that hardly run at all: clock ticks would be too coarse."""
    found = {}
    for process in _tree(pid):
        with contextlib.suppress(OSError):
            found[process] = int(Path(f"/proc/{process}/schedstat").read_text().split()[0])
    return found


def milliseconds_of(pid: int) -> float:
    """The same of one process alone, with all its threads."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            total += int(thread.read_text().split()[0])
    return total / 1e6


def _tree(pid: int) -> Iterator[int]:
    """The kernel's own list. Looking through all processes of the machine would take longer than some rounds."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield from _tree(int(child))
