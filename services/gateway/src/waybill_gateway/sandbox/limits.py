"""The resource limits of a parser. It sets them itself before it reads a document, and the kernel enforces them.

Linux has all of them. Other systems lack some; the service still ends a parse that takes too long.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_OPEN_FILES = 64
_NICENESS = 2
_OOM_SCORE = "1000"
"""The highest there is. A lower one could be below that of the service, which a pod may have raised."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """All values are in bytes."""

    memory: int
    result: int
    """The largest file that a parser may write."""


def end_with(parent: int) -> None:
    """Make the kernel kill us when the service dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # it died before we called prctl
        sys.exit(0)


def apply(limits: ProcessLimits) -> None:
    # A limit on address space makes malloc fail; a limit on resident memory would wake the machine's OOM killer.
    _lower(resource.RLIMIT_AS, limits.memory)
    _lower(resource.RLIMIT_DATA, limits.memory)
    _lower(resource.RLIMIT_FSIZE, limits.result)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _lower(resource.RLIMIT_CORE, 0)  # a core file would contain the document
    os.nice(_NICENESS)  # the service has priority, because it answers probes and refuses excess requests
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it ends us like any other signal, not with an exception
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            # If memory is short, the kernel shall end a parser, which harms nobody, and not the service or a database.
            Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def allow_cpu(seconds: float) -> None:
    """Set the CPU time limit for the next document; SIGXCPU ends a parser that exceeds it.

    The kernel counts CPU time since the process started, so the limit has to grow with every document.
    """
    most = int(Usage.so_far().cpu + seconds) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or most <= hard:
        resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


class Memory:
    """Reads how much memory this process uses. It opens the file early, because the sandbox forbids that later."""

    def __init__(self) -> None:
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open(Path("/proc/self/statm"), os.O_RDONLY | os.O_CLOEXEC)

    def resident(self) -> int:
        """Bytes, or 0 if the system does not tell."""
        if self._file is None:
            return 0
        return int(os.pread(self._file, 100, 0).split()[1]) * resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used since it started."""

    peak: int
    """The most memory, in bytes, including that of the process it was forked from."""
    cpu: float
    """Seconds of CPU time."""

    @classmethod
    def of(cls, usage: resource.struct_rusage) -> Usage:
        # Kilobytes on Linux and the BSDs, bytes on macOS.
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return cls(peak, usage.ru_utime + usage.ru_stime)

    @classmethod
    def so_far(cls) -> Usage:
        """That of this process."""
        return cls.of(resource.getrusage(resource.RUSAGE_SELF))


def _lower(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    with contextlib.suppress(ValueError, OSError):  # not every system has every limit
        resource.setrlimit(which, (most, most))
