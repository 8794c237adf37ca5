"""The pool of processes for blocking and CPU-heavy work, so that the loop that renews the lease never stalls.

AnyIO keeps the processes warm, runs one call at a time in each, and kills a process whose call is cancelled.
"""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable
from typing import TypeVar, cast

from anyio import BrokenWorkerProcess, CapacityLimiter, to_process

from waybill.errors import WorkerCrashed
from waybill_engine.worker.child_processes import end_with_parent

T = TypeVar("T")


class BlockingPool:
    def __init__(self, size: int) -> None:
        self._size = size
        self._limiter: CapacityLimiter | None = None

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        if self._limiter is None:  # made here, because it belongs to the running loop
            self._limiter = CapacityLimiter(self._size)
        call = pickle.dumps((function, arguments))
        try:
            answer = await to_process.run_sync(_answer, call, cancellable=True, limiter=self._limiter)
        except BrokenWorkerProcess as error:
            raise WorkerCrashed(f"The process running {function.__qualname__} died.") from error
        failure, result = pickle.loads(answer)  # noqa: S301 - written by our own process
        if failure is not None:
            raise failure
        return cast("T", result)


def _answer(call: bytes) -> bytes:
    """Runs in the pool's process. It pickles by itself, so that what cannot be pickled fails only its own call."""
    end_with_parent(signal.SIGKILL)  # a worker that was killed with -9 cannot kill it, so the kernel does
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker answers Ctrl-C in a terminal
    try:
        function, arguments = pickle.loads(call)  # noqa: S301 - written by our own process
        return _packed(None, function(*arguments))
    except BaseException as error:  # noqa: BLE001 - it is raised again in the worker
        try:
            return _packed(error, None)
        except Exception:  # noqa: BLE001 - an error that cannot be pickled is described in words
            return pickle.dumps((RuntimeError(f"{type(error).__qualname__}: {error}"), None))


def _packed(error: BaseException | None, result: object) -> bytes:
    packed = pickle.dumps((error, result))
    pickle.loads(packed)  # noqa: S301 - some things can be pickled but not unpickled; better to know here
    return packed
