"""Processor time of processes. Unlike wall-clock time, it depends little on what else the machine is doing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil


def seconds_of(pid: int) -> float:
    """Processor time of a process and its descendants, including threads and ended children."""
    total = 0.0
    for process in _tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(process).cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def nanoseconds_of_each(pid: int) -> dict[int, int]:
    """The same per process in nanoseconds, because clock ticks are too coarse for processes that hardly run."""
    found = {}
    for process in _tree(pid):
        with contextlib.suppress(OSError):
            found[process] = int(Path(f"/proc/{process}/schedstat").read_text().split()[0])
    return found


def milliseconds_of(pid: int) -> float:
    """Processor time of one process alone, with all its threads."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            total += int(thread.read_text().split()[0])
    return total / 1e6


def _tree(pid: int) -> Iterator[int]:
    """A process and its descendants, listed by the kernel. Searching all processes takes longer than some rounds."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield from _tree(int(child))
