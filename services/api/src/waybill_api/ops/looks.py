"""Who is watching `/ops`. An open page asks every few seconds; the audit trail records that once in a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from waybill.web.visitors import Visitor

_EVERY = 600.0
"""Seconds for which watching counts as one look."""
_MOST = 1000


class Looks:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, float] = {}

    def is_new(self, who: str) -> bool:
        """Whether this look is to be recorded: nobody looked under this name for a while."""
        now = self._clock()
        if now - self._seen.get(who, -_EVERY) < _EVERY:
            return False
        self._seen = {name: at for name, at in self._seen.items() if now - at < _EVERY}
        if len(self._seen) >= _MOST:
            self._seen.clear()  # rather one event too many than one too few
        self._seen[who] = now
        return True


def name_of(visitor: Visitor) -> str:
    """Under which name a visitor's looks are counted: the browser's session, or the program's key."""
    return str(visitor.session.id if visitor.session is not None else visitor.principal.key_id)
