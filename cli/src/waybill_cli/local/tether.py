"""Starts a command that dies together with its parent. `waybill up` runs everything this way.

This file is also a small program. It drops privileges, ties itself to its parent and becomes the command (same pid). It
does that in a fresh interpreter and not in a `preexec_fn`, which would be unsafe with threads.
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
    """The command line that runs `command` as `account`, and signals it when this process dies.

    This works on Linux only, and only from the main thread, because the kernel watches the thread that starts the
    command. Otherwise the command outlives a killed parent.
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
    """If `make` started us, die when it is killed with SIGKILL, which it cannot forward."""
    if sys.platform == "linux" and "MAKELEVEL" in os.environ:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _become(parent: int, death_signal: int, account: str, command: list[str]) -> None:
    libc = ctypes.CDLL(None)
    if account != "-":
        uid, gid = (int(part) for part in account.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)  # no imports after this line, since the new user may not be able to read the standard library
    if death_signal:
        libc.prctl(_PR_SET_PDEATHSIG, death_signal)  # after setuid, which clears it
        if os.getppid() != parent:  # it died before prctl
            sys.exit(1)
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    _become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
