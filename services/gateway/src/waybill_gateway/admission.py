"""Who may come in: as many requests as can be parsed or may wait, and nobody once the gateway is leaving.

Sending a document and fetching an answer take as long as the client likes; parsing takes as long as we need. They are
counted apart, so that slow clients do not keep parsers idle. Who has just come in is expected to send promptly and has
a place kept for a moment: of a burst, those who find none are told before they send, and not after.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from waybill_gateway.refusals import saturated

_LONGEST_WAIT = 30
"""Seconds a client is asked to wait, at most."""


_INSIDE_PER_PLACE = 4
"""Requests that may be inside for each that may be parsed or wait: the others send or fetch. Bounds the spool."""

_KEPT = 2.0
"""Seconds for which a place is kept for somebody who sends: 50 MB in a data centre."""


class Visit:
    """One request that was let in."""


class Admission:
    def __init__(self, *, processes: int, queue: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._processes = processes
        self._most = processes + queue
        self._clock = clock
        self._average = 1.0
        self._kept: dict[Visit, float] = {}
        self.inside = 0
        """Requests that are not answered yet, whatever they do."""
        self.parsing = 0
        """Those of them that are parsed, or wait for it."""
        self.leaving = False

    @contextmanager
    def enter(self) -> Iterator[Visit]:
        """Take the whole request in; refuse it at once if it could not be parsed now."""
        if self.leaving:
            raise saturated(self.retry_after(), "This gateway is about to stop. Please try again.")
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
        """Take one of the places at the parsers, once the document is there; who was slow may find none."""
        self._kept.pop(visit, None)
        if self._taken() >= self._most:
            raise saturated(self.retry_after())
        self.parsing += 1
        try:
            yield
        finally:
            self.parsing -= 1

    def took(self, seconds: float) -> None:
        """Learn how long documents take these days."""
        self._average += 0.1 * (seconds - self._average)

    def retry_after(self) -> int:
        """Seconds after which a place should be free."""
        return min(_LONGEST_WAIT, max(1, math.ceil(self._average * self.parsing / self._processes)))

    def _taken(self) -> int:
        """Places that are taken or kept."""
        now = self._clock()
        return self.parsing + sum(until > now for until in self._kept.values())
