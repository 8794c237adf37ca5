"""Removes what a killed server process left behind.

The caller holds the data directory's lock, so whatever still runs there has no owner.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from waybill_cli.local.postgres.steps import take

_PROC = Path("/proc")
_PATIENCE = {signal.SIGINT: 30.0, signal.SIGQUIT: 10.0, signal.SIGKILL: 10.0}


def clear_leftovers(data: Path) -> None:
    """Stop every process that still uses `data`, then remove the pid file and the shared memory."""
    take(clearing(data))


def clearing(data: Path) -> Iterator[None]:
    """The same in steps (see `steps`)."""
    for step, patience in _PATIENCE.items():
        running = server_processes(data)
        if not running:
            break
        postmaster = postmaster_pid(data)
        if postmaster in running and step != signal.SIGKILL:
            _signal(postmaster, step)  # it stops its children too
        else:
            # Without a postmaster we have to kill them. Nothing is lost, since committed data is in the log on disk.
            for pid in running:
                _signal(pid, signal.SIGKILL)
        deadline = time.monotonic() + patience
        while server_processes(data) and time.monotonic() < deadline:
            yield
    pid_file = data / "postmaster.pid"
    _release_shared_memory(pid_file)
    # Postgres would trust the pid in this file even if it now belongs to another program.
    pid_file.unlink(missing_ok=True)


def postmaster_pid(data: Path) -> int | None:
    """The pid in `postmaster.pid`, whether it is alive or not."""
    try:
        return int((data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def server_processes(data: Path) -> list[int]:
    """The postgres processes in this data directory, including orphaned backends."""
    if sys.platform != "linux":
        pid = postmaster_pid(data)
        return [pid] if pid and _is_postgres(pid, data) else []
    found = []
    for process in _PROC.glob("[0-9]*"):
        # Skip processes that end meanwhile, and those of other users.
        with contextlib.suppress(OSError):
            if (process / "comm").read_text() == "postgres\n" and (process / "cwd").readlink() == data:
                found.append(int(process.name))
    return found


def _release_shared_memory(pid_file: Path) -> None:
    """Free the System V segment of a killed server, since its data directory may never be started again."""
    try:
        key, segment = (int(word) for word in pid_file.read_text().splitlines()[6].split())
        table = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    except (OSError, IndexError, ValueError):
        return
    signed_key = (key + 2**31) % 2**32 - 2**31  # the kernel prints it signed, Postgres unsigned
    for row in (line.split() for line in table):
        if row[:2] == [str(signed_key), str(segment)] and row[6] == "0":  # it is ours and no process uses it
            ctypes.CDLL(None).shmctl(segment, 0, None)  # 0 is IPC_RMID


def _is_postgres(pid: int, data: Path) -> bool:
    ps = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True)  # noqa: S607
    return "postgres" in ps.stdout and str(data) in ps.stdout


def _signal(pid: int, step: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, step)
