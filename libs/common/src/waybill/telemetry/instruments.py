"""Counters, gauges and histograms: plain numbers in memory, cheap enough for every job and every request.

They are our own and not those of prometheus-client, whose import takes longer than most commands, and which lock for
every number: an observation here costs a quarter of one there. `exposition` hands the numbers to prometheus-client,
which writes the formats. A number is written by one thread, the one with the event loop; others may read at any time.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from waybill.telemetry import spans

MOST_SERIES = 1000
"""Combinations of labels that one metric may have. The rest is counted together, so that no caller fills our memory or
that of Prometheus."""
REST = "other"

Labels = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Exemplar:
    """An observation that somebody may want to look at, by the trace that it belongs to."""

    trace_id: str
    value: float
    at: float


class Metric(Generic[T]):
    """What all of them have: a name, a meaning, labels, and one series for each combination of their values."""

    type = ""
    begins = True
    """Whether it shows a 0 before anything has happened. What nobody has measured yet is not 0."""

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = (), *, shown_by: Sequence[str]) -> None:
        """`shown_by` are the services that have something to say about it; the others do not show it."""
        self.name = name
        self.meaning = meaning
        self.label_names = tuple(labels)
        self.shown_by = frozenset(shown_by)
        self._series: dict[Labels, T] = {}
        self.reset()

    def labels(self, *values: str) -> T:
        """The series with these values of the labels."""
        found = self._series.get(values)
        if found is None:
            if len(values) != len(self.label_names):
                raise ValueError(f"{self.name} has the labels {self.label_names}, not {len(values)} of them")
            if len(self._series) >= MOST_SERIES:
                values = (REST,) * len(self.label_names)
            found = self._series.setdefault(values, self._new())
        return found

    def reset(self) -> None:
        """Forget everything, as a process that has just started."""
        self._series = {}
        if self.begins and not self.label_names:
            self.labels()

    def series(self) -> Iterator[tuple[Labels, T]]:
        yield from list(self._series.items())

    def _new(self) -> T:
        raise NotImplementedError


class Number:
    """One series of a counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def inc(self, by: float = 1) -> None:
        self.value += by

    def set(self, value: float) -> None:
        self.value = value


class Counter(Metric[Number]):
    """Only grows, and begins at 0 when its process does."""

    type = "counter"

    def inc(self, by: float = 1) -> None:
        self.labels().value += by

    def replace(self, values: Mapping[Labels, float]) -> None:
        """Show what somebody else has counted."""
        self._series = {labels: _number(value) for labels, value in values.items()}

    def _new(self) -> Number:
        return Number()


class Gauge(Metric[Number]):
    """Goes up and down."""

    type = "gauge"
    begins = False

    _ask: Callable[[], Mapping[Labels, float]] | None = None

    def set(self, value: float) -> None:
        self.labels().value = value

    def replace(self, values: Mapping[Labels, float]) -> None:
        """Show these series and no others."""
        self._series = {labels: _number(value) for labels, value in values.items()}

    def ask(self, function: Callable[[], Mapping[Labels, float]] | None) -> None:
        """Have a function asked whenever somebody looks. It runs in the thread that looks, and must be quick."""
        self._ask = function

    def series(self) -> Iterator[tuple[Labels, Number]]:
        if self._ask is None:
            yield from super().series()
            return
        for labels, value in self._ask().items():
            yield labels, _number(value)

    def reset(self) -> None:
        self._ask = None
        super().reset()

    def _new(self) -> Number:
        return Number()


class Distribution:
    """One series of a histogram."""

    __slots__ = ("bounds", "counts", "exemplars", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.exemplars: dict[int, Exemplar] = {}

    def observe(self, value: float, trace_id: str | None = None) -> None:
        """Count one observation; `trace_id` names its trace, which is the current one unless it is given."""
        where = bisect_left(self.bounds, value)
        self.counts[where] += 1
        self.sum += value
        if spans.on() and (trace_id := trace_id or current_trace()) is not None:
            self.exemplars[where] = Exemplar(trace_id, value, time.time())

    def observe_all(self, values: Iterable[float]) -> None:
        """Count many observations at once, in a fraction of the time. None of them becomes an exemplar."""
        ordered = sorted(values)
        below = 0
        for where, bound in enumerate(self.bounds):
            if below == len(ordered):
                break
            up_to = bisect_right(ordered, bound, below)
            self.counts[where] += up_to - below
            below = up_to
        self.counts[-1] += len(ordered) - below
        self.sum += sum(ordered)


class Histogram(Metric[Distribution]):
    """How often observations were at most so large."""

    type = "histogram"

    def __init__(
        self, name: str, meaning: str, labels: Sequence[str] = (), *, buckets: Sequence[float], shown_by: Sequence[str]
    ) -> None:
        self.buckets = tuple(sorted(buckets))
        super().__init__(name, meaning, labels, shown_by=shown_by)

    def observe(self, value: float, trace_id: str | None = None) -> None:
        self.labels().observe(value, trace_id)

    def _new(self) -> Distribution:
        return Distribution(self.buckets)


def current_trace() -> str | None:
    """The trace that what happens now belongs to, if it is recorded."""
    ids = spans.current_ids(sampled=True)
    return ids[0] if ids is not None else None


def _number(value: float) -> Number:
    number = Number()
    number.value = value
    return number
