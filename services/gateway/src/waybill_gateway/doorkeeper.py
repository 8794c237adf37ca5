"""Admits as many requests as can be parsed or may wait, and none once the gateway shuts down.

Clients decide how long sending a document and reading the answer take; we decide how long parsing takes. The two are
counted separately, so that slow clients do not keep parsers idle. A new request has a place reserved for a moment while
it sends its document. In a burst, the requests without a place are refused before they send anything.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from waybill.messages import msg
from waybill_gateway.refusals import saturated

_LONGEST_WAIT = 30
"""Seconds; the most that `Retry-After` asks for."""


_INSIDE_PER_PLACE = 4
"""Requests we admit for each one that is parsed or waits, because the others send or receive. This bounds the spool."""

_KEPT = 2.0
"""Seconds for which a sender's place is reserved: enough for 50 MB within a data centre."""


class Visit:
    """One admitted request."""


class Doorkeeper:
    def __init__(self, *, processes: int, queue: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._processes = processes
        self._most = processes + queue
        self._clock = clock
        self._average = 1.0
        self._kept: dict[Visit, float] = {}
        self.inside = 0
        """Requests that are not answered yet."""
        self.parsing = 0
        """Requests that are being parsed or wait for a parser."""
        self.leaving = False

    @contextmanager
    def enter(self) -> Iterator[Visit]:
        """Admit a request, or refuse it at once if no place is free."""
        if self.leaving:
            raise saturated(self.retry_after(), msg("gateway.leaving"))
        if self._taken() >= self._most or self.inside >= self._most * _INSIDE_PER_PLACE:
            raise saturated(self.retry_after())
        visit = Visit()
        self._kept[visit] = self._clock() + _KEPT
        self.inside += 1
        try:
            yield visit
        finally:
            self._kept.pop(visit, None)
            self.inside -= 1

    @contextmanager
    def parse(self, visit: Visit) -> Iterator[None]:
        """Take a place at the parsers once the document has arrived. A slow sender may find none left."""
        self._kept.pop(visit, None)
        if self._taken() >= self._most:
            raise saturated(self.retry_after())
        self.parsing += 1
        try:
            yield
        finally:
            self.parsing -= 1

    def took(self, seconds: float) -> None:
        """Record how long a document took, for `retry_after`."""
        self._average += 0.1 * (seconds - self._average)

    def retry_after(self) -> int:
        """Seconds until a place is probably free."""
        return min(_LONGEST_WAIT, max(1, math.ceil(self._average * self.parsing / self._processes)))

    def _taken(self) -> int:
        """How many places are taken or reserved."""
        now = self._clock()
        return self.parsing + sum(until > now for until in self._kept.values())
