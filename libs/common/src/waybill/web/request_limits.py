"""How much a visitor may ask for in a minute: by session, by network address and by tenant.

Each process counts for itself and in memory, because a write to the database for every read would cost more than the
read. What must hold across replicas, such as uploads, is counted by `waybill.rate_limits`. The arithmetic is the same:
a whole minute's worth may come at once, and after that it comes at a steady pace.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from waybill.errors import RateLimited
from waybill.messages import msg
from waybill.telemetry.metrics import RATE_LIMITED

if TYPE_CHECKING:
    from waybill.config import ApiSettings
    from waybill.web.visitors import Visitor

READ = 1
HEAVY = 5
"""What a picture of a page, a review page or a preview costs, in plain reads."""

_MINUTE = 60.0
_MOST = 50_000
"""Subjects we remember. The one that has asked least recently is forgotten first."""


class _Limit(NamedTuple):
    subject: str
    per_minute: int
    """0 means no limit."""


class RequestLimits:
    def __init__(self, settings: ApiSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_session = settings.api_reads_per_minute
        self._per_address = settings.api_address_reads_per_minute
        self._per_tenant = settings.api_key_reads_per_minute
        self._clock = clock
        self._due: OrderedDict[str, float] = OrderedDict()
        """When all that a subject took would have come at the steady pace."""

    def take(self, visitor: Visitor, address: str, cost: int) -> None:
        """Count a request. RateLimited if the session, the address or the tenant has asked for too much."""
        limits = [limit for limit in self._limits(visitor, address) if limit.per_minute]
        now = self._clock()
        due = {limit.subject: self._after(limit, now, cost) for limit in limits}
        wait = max((moment - now - _MINUTE for moment in due.values()), default=0.0)
        if wait > 0:  # nothing is taken, so asking too early costs nothing
            RATE_LIMITED.labels("requests").inc()
            raise RateLimited(msg("request.too_many"), retry_after=max(1.0, wait))
        for subject, moment in due.items():
            self._due[subject] = moment
            self._due.move_to_end(subject)
        while len(self._due) > _MOST:
            self._due.popitem(last=False)

    def _limits(self, visitor: Visitor, address: str) -> Iterable[_Limit]:
        if visitor.principal.signed_in:
            yield _Limit(f"tenant {visitor.principal.tenant}", self._per_tenant)
            return
        if visitor.met_before:  # anybody can be a new browser with each request; its address stays
            yield _Limit(visitor.principal.owner, self._per_session)
        yield _Limit(f"address {address}", self._per_address)

    def _after(self, limit: _Limit, now: float, cost: int) -> float:
        return max(self._due.get(limit.subject, 0.0), now) + cost * _MINUTE / limit.per_minute
