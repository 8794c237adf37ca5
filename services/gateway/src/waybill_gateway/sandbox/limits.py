"""What a parsing process may use, enforced by the kernel and set by the process itself before it sees a document.

Linux has all of it. Elsewhere what is missing is left out; the service's own clock still ends every parse.
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


@dataclass(frozen=True, slots=True)
class Limits:
    """All in bytes."""

    memory: int
    result: int
    """The largest file it may write."""


def end_with(parent: int) -> None:
    """Have the kernel kill us when the service dies, however it dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # it died before we could ask
        sys.exit(0)


def apply(limits: Limits) -> None:
    # Address space and not resident memory: it is what makes malloc fail instead of waking the machine's OOM killer.
    _lower(resource.RLIMIT_AS, limits.memory)
    _lower(resource.RLIMIT_DATA, limits.memory)
    _lower(resource.RLIMIT_FSIZE, limits.result)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _lower(resource.RLIMIT_CORE, 0)  # a core file would hold the document
    os.nice(_NICENESS)  # the service itself goes first: it answers probes and refuses what is too much
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def allow_cpu(seconds: float) -> None:
    """Give the next document its time on the processor; SIGXCPU ends what takes more.

    The kernel counts a process's whole life, so the limit moves on with every document.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or most <= hard:
        resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


class Memory:
    """Looks up how much memory this process holds. Opened first: later the sandbox allows no such look."""

    def __init__(self) -> None:
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open(Path("/proc/self/statm"), os.O_RDONLY | os.O_CLOEXEC)

    def resident(self) -> int:
        """Bytes; 0 where nobody can say."""
        if self._file is None:
            return 0
        return int(os.pread(self._file, 100, 0).split()[1]) * resource.getpagesize()


def peak() -> int:
    """The most memory that is on this process's account, in bytes; that of the process it was forked from included."""
    # Kilobytes on Linux and the BSDs, bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _lower(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    with contextlib.suppress(ValueError, OSError):  # not every system knows every limit
        resource.setrlimit(which, (most, most))
