"""How a call to a parser can fail."""

from __future__ import annotations


class PoolError(Exception):
    """The base of all of them."""


class Crashed(PoolError):
    """The document crashed the parser."""


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
    """No parser was free in time, or none can be started."""
