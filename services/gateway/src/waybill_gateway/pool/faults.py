"""How a call to a parsing process can end other than well."""

from __future__ import annotations


class PoolError(Exception):
    """The root of them."""


class Crashed(PoolError):
    """The process died of the document."""


class TookTooLong(PoolError):
    """The process was killed because its time was up."""


class TooMuchMemory(PoolError):
    """The document needed more memory than a process may use."""


class Broken(PoolError):
    """Our own code raised what it should not; the traceback is for the log alone."""

    def __init__(self, traceback: str) -> None:
        super().__init__("the parsing code is broken")
        self.traceback = traceback


class OutOfSpace(PoolError):
    """The disk is full."""


class Unavailable(PoolError):
    """No process was free in time, or none can be started."""
