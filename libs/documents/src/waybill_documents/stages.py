"""Measures how long each stage takes, by a clock that the caller provides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Clock = Callable[[], float]
"""Returns seconds since any fixed moment, like `time.perf_counter`."""

T = TypeVar("T")


NAMES = frozenset(
    {
        *("attachment", "checks", "computed", "confidence", "fields", "image", "lines", "office", "printed"),
        *("recognise", "rows", "tables", "values", "words", "xml"),
    }
)
"""All stages that there are."""


class Stages:
    """Milliseconds by stage, in the order in which the stages first ran."""

    def __init__(self, clock: Clock) -> None:
        self.milliseconds: dict[str, float] = {}
        self.extents: dict[str, tuple[float, float]] = {}
        """When each stage first began and last ended. A stage that runs page by page takes turns with others."""
        self._clock = clock

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Count the time of this block towards a stage."""
        start = self._clock()
        try:
            yield
        finally:
            self._add(stage, start)

    def through(self, stage: str, items: Iterable[T]) -> Iterator[T]:
        """Count the time it takes to make each item towards a stage."""
        iterator = iter(items)
        while True:
            start = self._clock()
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self._add(stage, start)
            yield item

    def _add(self, stage: str, start: float) -> None:
        end = self._clock()
        self.milliseconds[stage] = self.milliseconds.get(stage, 0.0) + (end - start) * 1000
        self.extents[stage] = (self.extents.get(stage, (start, end))[0], end)
