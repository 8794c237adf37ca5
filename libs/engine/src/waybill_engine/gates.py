"""Gates: what may keep a lane from being claimed, as one worker knows it.

A gate is a cap, a rate, or a dependency whose breaker is not closed or that asked us to wait. A worker that finds a
gate closed leaves the lanes behind it alone for a while instead of asking again with every claim. Pure: it asks no
database and has no clock of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from waybill_engine.lanes import Lane
from waybill_engine.rules import Cap, Rate, Rules

if TYPE_CHECKING:
    from waybill_engine.claim import ClaimedJob

Gate = Cap | Rate | str
"""A cap, a rate, or the name of a dependency that a breaker limits."""

_MOMENT = 0.5
"""Seconds a closed gate is left alone, unless one of this worker's own runs ends before that."""

_BUSY = 0.01
"""Seconds until the first look at a gate where another worker was claiming."""


class Gates:
    def __init__(self, dependencies: Mapping[str, Sequence[str]]) -> None:
        self._dependencies = dependencies
        self._caps: dict[tuple[str | None, str | None], Cap] = {}
        self._rates: dict[tuple[str | None, str | None], Rate] = {}
        self._limited: Mapping[str, str] = {}
        self._closed_until: dict[Gate, float] = {}
        self._pauses: dict[Gate, float] = {}

    def apply(self, rules: Rules) -> None:
        """Go by these rules from now on. What was known about gates that they change is out of date."""
        self._caps, self._rates = {}, {}
        self.learn(rules.caps, rules.rates)
        # As other lanes are found, other caps and rates matter. What did not change stays closed.
        same: set[Gate] = {*rules.caps, *rules.rates, *dict(self._limited.items() & rules.limited.items())}
        self._limited = rules.limited
        self._closed_until = {gate: until for gate, until in self._closed_until.items() if gate in same}
        self._pauses = {gate: pause for gate, pause in self._pauses.items() if gate in same}

    def learn(self, caps: Iterable[Cap], rates: Iterable[Rate]) -> None:
        """There are these caps and rates, too."""
        self._caps |= {(cap.tenant, cap.kind): cap for cap in caps}
        self._rates |= {(rate.tenant, rate.kind): rate for rate in rates}

    def of(self, lane: Lane) -> tuple[Gate, ...]:
        """The gates in front of a lane."""
        limited = (one for one in self.dependencies(lane.kind) if one in self._limited)
        return (*self.caps(lane.tenant, lane.kind), *self.rates(lane.tenant, lane.kind), *limited)

    def caps(self, tenant: str, kind: str) -> list[Cap]:
        """The caps that limit jobs of this tenant and kind."""
        keys = ((tenant, kind), (tenant, None), (None, kind)) if self._caps else ()
        return [cap for key in keys if (cap := self._caps.get(key)) is not None]

    def rates(self, tenant: str, kind: str) -> list[Rate]:
        """The rates that limit jobs of this tenant and kind."""
        keys = ((tenant, kind), (tenant, None), (None, kind)) if self._rates else ()
        return [rate for key in keys if (rate := self._rates.get(key)) is not None]

    def dependencies(self, kind: str) -> Sequence[str]:
        return self._dependencies.get(kind, ())

    def close(self, gate: Gate, now: float, seconds: float | None = None) -> None:
        """Nothing gets through this gate for so many seconds, or for a moment."""
        self._closed_until[gate] = now + (_MOMENT if seconds is None else max(seconds, 0.01))
        self._pauses.pop(gate, None)

    def back_off(self, gate: Gate, now: float) -> None:
        """Another worker is claiming here. Leave the gate alone for twice as long each time, up to a moment."""
        pause = self._pauses[gate] = min(2 * self._pauses.get(gate, _BUSY / 2), _MOMENT)
        self._closed_until[gate] = now + pause

    def reopen_caps(self, ended: Iterable[ClaimedJob]) -> None:
        """These jobs no longer run, so the caps on them may have room. Breakers announce their changes themselves, and
        for rates only time counts."""
        if self._closed_until and self._caps:
            for tenant, kind in {(job.tenant, job.kind) for job in ended}:
                for cap in self.caps(tenant, kind):
                    self._closed_until.pop(cap, None)

    def all_open(self, gates: Iterable[Gate], now: float) -> bool:
        return not any(self._closed_until.get(gate, now) > now for gate in gates) if self._closed_until else True

    def next_opening(self, lanes: Iterable[tuple[Gate, ...]], now: float) -> float | None:
        """When the first of these lanes, given by their gates, may open. None when none is behind a closed gate."""
        if not self._closed_until:
            return None
        openings = (max((self._closed_until.get(gate, now) for gate in gates), default=now) for gates in lanes)
        return min((opening for opening in openings if opening > now), default=None)
