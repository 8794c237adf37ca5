"""How a call to a parser can fail, and the code of the taxonomy that a span of it has."""

from __future__ import annotations

from typing import ClassVar

from waybill.errors import Code


class PoolError(Exception):
    """The base of all of them."""

    code: ClassVar[Code] = Code.GW_5XX


class Crashed(PoolError):
    """The parser crashed. If that repeats in a fresh process, the document is to blame."""

    code = Code.PARSE_ERROR


class Killed(PoolError):
    """Somebody else killed the parser, such as the kernel's OOM killer. The document is never to blame."""

    code = Code.NOT_READY


class TookTooLong(PoolError):
    """The parser was killed because it took too long."""

    code = Code.PARSE_ERROR


class TooMuchMemory(PoolError):
    """The document needs more memory than a parser may use."""

    code = Code.PARSE_ERROR


class Broken(PoolError):
    """Our own code has a bug. The traceback is for the log only."""

    def __init__(self, traceback: str) -> None:
        super().__init__("the parsing code is broken")
        self.traceback = traceback


class OutOfSpace(PoolError):
    """The disk is full."""

    code = Code.IO_ERROR


class Unavailable(PoolError):
    """No parser was free in time, none can be started, or the gateway is shutting down."""

    code = Code.NOT_READY
