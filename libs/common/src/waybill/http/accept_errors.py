"""Connections that cannot be accepted because no file descriptors are left are logged once in a while.

asyncio tries again every second for each of the backlog's hundred places, and logs a traceback each time.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable
from typing import Any

import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_EVERY = 60.0
"""Seconds between two lines in the log."""
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class AcceptErrors:
    """An exception handler for the loop. It knows what asyncio says when it cannot accept a connection."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._quiet_until = float("-inf")
        self._unsaid = 0

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.set_exception_handler(self.handle)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _EXHAUSTED or "socket" not in context:
            loop.default_exception_handler(context)
            return
        now = self._clock()
        if now < self._quiet_until:
            self._unsaid += 1
            return
        log.error("cannot_accept_connections", error=error.strerror, not_logged=self._unsaid)
        self._quiet_until, self._unsaid = now + _EVERY, 0
