"""Blocking and CPU-heavy work, in processes beside the loop, so that the loop that renews leases never stalls.

AnyIO keeps the processes warm, runs one call at a time in each, and kills the one whose call is cancelled.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TypeVar

from anyio import BrokenWorkerProcess, CapacityLimiter, to_process

from waybill.errors import WorkerCrashed
from waybill_worker.children import end_with_parent

T = TypeVar("T")


class BlockingPool:
    def __init__(self, size: int) -> None:
        self._size = size
        self._limiter: CapacityLimiter | None = None

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        if self._limiter is None:  # belongs to the running loop
            self._limiter = CapacityLimiter(self._size)
        try:
            return await to_process.run_sync(_tied, function, *arguments, cancellable=True, limiter=self._limiter)
        except BrokenWorkerProcess as error:
            raise WorkerCrashed(f"The process running {function.__qualname__} died.") from error


def _tied(function: Callable[..., T], *arguments: object) -> T:
    """Runs in the pool's process. A worker killed with -9 cannot kill it, so the kernel does."""
    end_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the worker's to answer
    return function(*arguments)
