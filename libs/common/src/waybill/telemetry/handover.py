"""What a process has counted, for the one that goes on after it has ended.

A process that runs suspects of a crash lives for seconds. Unless somebody takes over its numbers, no scrape sees
its jobs.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from waybill.telemetry.instruments import Counter, Distribution, Histogram
from waybill.telemetry.metrics import CATALOGUE

_MOST_BYTES = 4 * 1024 * 1024


def leave(path: Path) -> None:
    """Write the counters and histograms of this process to a file."""
    told = {}
    for metric in CATALOGUE:
        if isinstance(metric, Counter):
            told[metric.name] = [[labels, one.value] for labels, one in metric.series() if one.value]
        elif isinstance(metric, Histogram):
            told[metric.name] = [[labels, one.counts, one.sum] for labels, one in metric.series() if any(one.counts)]
    with contextlib.suppress(OSError):  # they are only numbers
        path.write_text(json.dumps(told))


def take_over(path: Path) -> None:
    """Add what such a process left to the numbers of this one, once. One that was killed has left nothing."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return
        told = json.loads(path.read_text())
        path.unlink()
    except (OSError, ValueError):
        return
    for metric in CATALOGUE:
        for labels, *numbers in told.get(metric.name, ()):
            if isinstance(metric, Counter):
                metric.labels(*labels).inc(numbers[0])
            elif isinstance(metric, Histogram):
                _add(metric.labels(*labels), *numbers)


def _add(mine: Distribution, counts: list[int], total: float) -> None:
    if len(counts) == len(mine.counts):
        mine.counts = [one + other for one, other in zip(mine.counts, counts, strict=True)]
        mine.sum += total
