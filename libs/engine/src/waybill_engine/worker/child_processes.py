"""Worker processes started by worker processes: how they are started, and how they end with their parent."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import uuid

_PR_SET_PDEATHSIG = 1


async def start_child(worker_id: uuid.UUID, *arguments: str) -> asyncio.subprocess.Process:
    """Start a worker process under a known id, so that its parent can speak for it when it dies."""
    command = ["-m", "waybill_worker", "--worker-id", str(worker_id), "--parent", str(os.getpid()), *arguments]
    # In a session of its own: a terminal's Ctrl-C reaches the parent, which tells its children.
    return await asyncio.create_subprocess_exec(sys.executable, *command, start_new_session=True)


def stop_with(parent: int) -> None:
    """Called in the child: when the parent dies, stop as if told to, giving back what is held."""
    end_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # it died before we could ask
        sys.exit(0)


def end_with_parent(number: signal.Signals) -> None:
    """Have the kernel send us a signal when the parent dies, however it dies. Linux only; elsewhere nothing happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
