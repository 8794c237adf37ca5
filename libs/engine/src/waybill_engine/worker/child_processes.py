"""Worker processes that a worker process starts, and how they end with their parent."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import uuid

_PR_SET_PDEATHSIG = 1


async def start_child(program: str, worker_id: uuid.UUID, *arguments: str) -> asyncio.subprocess.Process:
    """Start `python -m program` under a known worker id, so that its parent can rescue its jobs when it dies."""
    command = ["-m", program, "--worker-id", str(worker_id), "--parent", str(os.getpid()), *arguments]
    # In a session of its own: Ctrl-C in a terminal reaches only the parent, which then stops its children.
    return await asyncio.create_subprocess_exec(sys.executable, *command, start_new_session=True)


def stop_with(parent: int) -> None:
    """Called in the child: stop as on SIGTERM when the parent dies, and so release what it runs."""
    end_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # it died before the kernel was asked
        sys.exit(0)


def end_with_parent(number: signal.Signals) -> None:
    """Have the kernel send us a signal when the parent dies, however it dies. Only Linux can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
