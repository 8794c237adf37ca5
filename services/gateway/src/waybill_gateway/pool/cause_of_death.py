"""Why a parser died while it had a document: by its own limits, by its own crash, or by somebody else's signal."""

from __future__ import annotations

import signal

from waybill_gateway.pool.faults import Crashed, Killed, PoolError, TookTooLong, TooMuchMemory
from waybill_gateway.pool.os_process import ProcessEnd
from waybill_gateway.sandbox.limits import Usage

_MUCH = 0.4
"""The share of its memory limit that a parser must have used for a crash to count as lack of memory."""

_CRASHES = frozenset(
    -number
    for number in (
        signal.SIGSEGV,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGILL,
        signal.SIGFPE,
        signal.SIGTRAP,  # how pdfium's own assertions end
        signal.SIGSYS,
    )
)
"""Exit codes of signals that a process brings upon itself."""


def cause_of_death(end: ProcessEnd, *, before: Usage, memory: int, seconds: float) -> PoolError:
    """What an end means that we did not cause.

    `before` is what the parser had used when it began with the document, and `memory` and `seconds` are its limits.
    """
    if end.code == -signal.SIGXCPU and end.usage.cpu - before.cpu >= seconds:
        return TookTooLong()
    if killed_from_outside(end):
        # Our memory limit makes allocations fail and never sends a signal, so it was not that, whatever was used.
        return Killed()
    # A parser that gets no more memory usually aborts without a message. One that used little memory, or no more than
    # an earlier document did, died of something else.
    starved = end.usage.peak > max(memory * _MUCH, before.peak)
    return TooMuchMemory() if starved or "MemoryError" in end.last_words else Crashed()


def killed_from_outside(end: ProcessEnd) -> bool:
    """Whether a signal ended the process that it did not bring upon itself."""
    return end.code < 0 and end.code not in _CRASHES
