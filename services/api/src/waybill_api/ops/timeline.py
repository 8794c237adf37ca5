"""A job's life as a chart: what it waited for, its runs and how they ended, in the order in which they happened.

The time between an end and a retry by hand is left out of the scale: a night in which nothing happened would leave no
room for the seconds that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from markupsafe import Markup

from waybill_api.ops import plots
from waybill_engine.models import State
from waybill_engine.queries import Happening

_LATER = frozenset({"retry_scheduled", "postponed", "snoozed"})
"""Ends of runs after which the job waits for a time of its own."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch of a job's life."""

    what: str
    """`queued`, `scheduled`, `run` or `ended`."""
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


@dataclass(frozen=True, slots=True)
class Row:
    span: Stretch
    bar: Markup


def spans(happenings: Sequence[Happening], state: State, now: datetime, runs_before: int = 0) -> list[Stretch]:
    """The stretches of the life of a job that is in this state now, or of its end, before which it ran so often."""
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
            until = _moment(one.detail.get("retry_at")) if one.event in _LATER else None
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


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
