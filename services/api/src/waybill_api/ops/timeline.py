"""A job's life as a chart: what it waited for, its runs and how they ended, in the order in which they happened.

The time between an end and a retry by hand is left out of the scale: a night in which nothing happened would leave no
room for the seconds that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from markupsafe import Markup

from waybill_api.ops import plots
from waybill_engine.models import State
from waybill_engine.queries import Happening
from waybill_engine.waits import LIMITING, PREFIX, moment_in

_LATER = frozenset({"retry_scheduled", "postponed", "snoozed"})
"""Ends of runs after which the job waits for a time of its own."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch of a job's life."""

    what: str
    """`queued`, `breaker`, `scheduled`, `run` or `ended`."""
    begin: datetime
    end: datetime
    going_on: bool = False
    number: int = 0
    """Of a run: the how manyth it is."""
    outcome: str = ""
    """Of a run: the event that ended it."""
    code: str | None = None
    message: str | None = None
    worker: str | None = None
    dependencies: tuple[str, ...] = ()
    """Of a wait for breakers: what they are of."""

    @property
    def seconds(self) -> float:
        return max((self.end - self.begin).total_seconds(), 0.0)

    @property
    def layer(self) -> str:
        """The class that it is drawn in."""
        if self.what != "run":
            return self.what
        if self.going_on:
            return "running"
        if self.outcome == "succeeded":
            return "succeeded"
        return "cancelled" if self.outcome in ("cancelled", "released", "snoozed") else "failed"


class _BreakerLimit(NamedTuple):
    """What keeps jobs of a dependency from being claimed: its `breaker` or a `cool-down`."""

    dependency: str
    what: str


@dataclass(frozen=True, slots=True)
class Row:
    span: Stretch
    bar: Markup


def spans(happenings: Sequence[Happening], state: State, now: datetime, runs_before: int = 0) -> list[Stretch]:
    """The stretches of the life of a job that is in this state now, or of its end, before which it ran so often."""
    whole = _life(happenings, state, now, runs_before)
    changes = [change for one in happenings if one.event.startswith(PREFIX) for change in _changes(one)]
    return [part for one in whole for part in (_split(one, changes) if one.what == "queued" else [one])]


def _life(happenings: Sequence[Happening], state: State, now: datetime, runs_before: int) -> list[Stretch]:
    """The same without breakers."""
    found: list[Stretch] = []
    since = now
    until: datetime | None = None
    run: Stretch | None = None
    for one in happenings:
        if one.event == "enqueued":
            since = one.at
        elif one.event == "started":
            found += _waited(since, one.at, until)
            number = 1 + runs_before + sum(each.what == "run" for each in found)
            run = Stretch("run", one.at, one.at, number=number, worker=one.worker)
        elif run is not None and one.lease_token is not None:
            code, message = one.detail.get("code"), one.detail.get("message")
            found.append(replace(run, end=one.at, outcome=one.event, code=code, message=message))
            run, since = None, one.at
            until = moment_in(one.detail, "retry_at") if one.event in _LATER else None
        elif one.event == "retried":
            found.append(Stretch("ended", since, one.at))
            since, until = one.at, None
        elif one.event == "cancelled" and run is None:
            found += _waited(since, one.at, until)
            since = one.at
    if run is not None:
        found.append(replace(run, end=now, going_on=True))
    elif not state.final:
        rest = [Stretch("scheduled", since, now)] if state is State.SCHEDULED else _waited(since, now, until)
        found += [*rest[:-1], *(replace(each, going_on=True) for each in rest[-1:])]
    return found


def rows(found: Sequence[Stretch]) -> list[Row]:
    """The spans with their bars, all on one scale."""
    total = sum((each.end - each.begin for each in found if each.what != "ended"), timedelta())
    whole = max(total.total_seconds(), 0.001)
    drawn, at = [], 0.0
    for each in found:
        if each.what == "ended":
            drawn.append(Row(each, Markup("")))
            continue
        drawn.append(Row(each, plots.span(at / whole, (at + each.seconds) / whole, each.layer)))
        at += each.seconds
    return drawn


def _waited(since: datetime, until: datetime, ready: datetime | None) -> list[Stretch]:
    """A wait, in two parts if the first was for a time of its own."""
    if until <= since:
        return []
    if ready is None or ready <= since:
        return [Stretch("queued", since, until)]
    if ready >= until:
        return [Stretch("scheduled", since, until)]
    return [Stretch("scheduled", since, ready), Stretch("queued", ready, until)]


def _changes(one: Happening) -> list[tuple[datetime, _BreakerLimit, bool]]:
    """When an event of a breaker began or ceased to limit what may be claimed."""
    dependency, event = str(one.detail.get("dependency")), one.event.removeprefix(PREFIX)
    breaker, cooldown = _BreakerLimit(dependency, "breaker"), _BreakerLimit(dependency, "cool-down")
    if event == "asked_to_wait":
        until = moment_in(one.detail, "until")
        return [(one.at, cooldown, True), (until, cooldown, False)] if until is not None and until > one.at else []
    ended = [(one.at, cooldown, False)] if event == "reset" else []
    return [(one.at, breaker, event in LIMITING), *ended]


def _split(waited: Stretch, changes: Sequence[tuple[datetime, _BreakerLimit, bool]]) -> list[Stretch]:
    """A wait in the queue, in parts if breakers limited some of it."""
    parts, limits, since = list[Stretch](), set[_BreakerLimit](), waited.begin
    for at, limit, begins in sorted(changes):
        if waited.begin <= at < waited.end and begins != (limit in limits):
            parts.append(_part(waited, since, at, limits))
            (limits.add if begins else limits.discard)(limit)
            since = at
    last = replace(_part(waited, since, waited.end, limits), going_on=waited.going_on)
    return [*(part for part in parts if part.begin < part.end), last]


def _part(waited: Stretch, begin: datetime, end: datetime, limits: set[_BreakerLimit]) -> Stretch:
    if not limits:
        return replace(waited, begin=begin, end=end, going_on=False)
    return Stretch("breaker", begin, end, dependencies=tuple(sorted({one.dependency for one in limits})))
