"""How a call to a parser can fail."""

from __future__ import annotations


class PoolError(Exception):
    """The base of all of them."""


class Crashed(PoolError):
    """The parser crashed. If that repeats in a fresh process, the document is to blame."""


class Killed(PoolError):
    """Somebody else killed the parser, such as the kernel's OOM killer. The document is never to blame."""


class TookTooLong(PoolError):
    """The parser was killed because it took too long."""


class TooMuchMemory(PoolError):
    """The document needs more memory than a parser may use."""


class Broken(PoolError):
    """Our own code has a bug. The traceback is for the log only."""

    def __init__(self, traceback: str) -> None:
        super().__init__("the parsing code is broken")
        self.traceback = traceback


class OutOfSpace(PoolError):
    """The disk is full."""


class Unavailable(PoolError):
    """No parser was free in time, none can be started, or the gateway is shutting down."""
