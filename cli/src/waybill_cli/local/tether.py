"""Starts a command that dies with the process that asked for it; everything `waybill up` runs, runs this way.

The file is also a tiny program of its own: it drops privileges, ties itself to its parent and becomes the
command (same pid). Doing that in a fresh interpreter, not in a `preexec_fn`, keeps it safe beside threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill_cli.local.postgres.account import Account

_PR_SET_PDEATHSIG = 1


def tethered(command: Sequence[str], *, on_parent_death: signal.Signals, account: Account | None = None) -> list[str]:
    """The command line that runs `command` as `account` and signals it when this process dies.

    Linux only; elsewhere, and from any thread but the main one (the kernel watches the starting *thread*,
    which may end long before the process does), the command simply outlives a killed parent.
    """
    tie = sys.platform == "linux" and threading.current_thread() is threading.main_thread()
    return [
        sys.executable,
        "-I",
        "-S",
        __file__,
        str(os.getpid()),
        str(int(on_parent_death) if tie else 0),
        f"{account.uid}:{account.gid}" if account else "-",
        *command,
    ]


def die_with_make() -> None:
    """If `make` started us, a `kill -9` of it is one of ours: it could not pass anything softer on."""
    if sys.platform == "linux" and "MAKELEVEL" in os.environ:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _become(parent: int, death_signal: int, account: str, command: list[str]) -> None:
    libc = ctypes.CDLL(None)
    if account != "-":
        uid, gid = (int(part) for part in account.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)  # from here on even the standard library may be out of reach: no more imports
    if death_signal:
        libc.prctl(_PR_SET_PDEATHSIG, death_signal)  # now, because a change of user clears it
        if os.getppid() != parent:  # it died before we were tied to it
            sys.exit(1)
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    _become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
