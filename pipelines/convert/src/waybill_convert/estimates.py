"""Estimates how long a document will take, from recent documents of about its size. None when there are too few."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SAMPLES = 200
"""How many recent conversions are looked at."""
_NEIGHBOURS = 15
_FEWEST = 5
_WIDEST = 3.0
"""If the middle half of the samples spreads by more than this factor, we give no estimate."""
_TWICE_AS_BIG = math.log(4)
"""Documents that are more than four times as big or small are not compared."""


@dataclass(frozen=True, slots=True)
class Estimate:
    seconds: float
    """The median."""
    latest: float
    """A document that takes longer than this is an outlier: its remaining time is unknown."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Quartiles in seconds of many documents of a size, as the janitor has noted them."""

    samples: int
    low: float
    median: float
    high: float


class Estimates:
    def __init__(self, samples: Sequence[tuple[int, float]], noted: Mapping[int, Noted] | None = None) -> None:
        """`noted` has durations by the binary logarithm of the size. They are used once the jobs are gone."""
        self._noted = noted or {}
        self._samples = [(math.log(max(size, 1)), seconds) for size, seconds in samples if seconds > 0]

    def of(self, size: int) -> Estimate | None:
        """The estimate for a document of this many bytes; None if it would be a poor one."""
        here = math.log(max(size, 1))
        # Sorted by distance alone, so that among equals the newest come first, and not the quickest.
        near = sorted(self._samples, key=lambda sample: abs(sample[0] - here))[:_NEIGHBOURS]
        times = sorted(seconds for there, seconds in near if abs(there - here) <= _TWICE_AS_BIG)
        if len(times) < _FEWEST:
            noted = self._noted.get(max(size, 1).bit_length() - 1)
            if noted is None or noted.samples < _FEWEST:
                return None
            low, middle, high = noted.low, noted.median, noted.high
        else:
            low, middle, high = (times[round(share * (len(times) - 1))] for share in (0.25, 0.5, 0.75))
        if high > low * _WIDEST:
            return None
        return Estimate(middle, max(high * 1.5, middle * 2))

    def remaining(self, size: int, running_for: float) -> int | None:
        """The remaining whole seconds, at least 1; None if there is no estimate."""
        estimate = self.of(size)
        if estimate is None or running_for > estimate.latest:
            return None
        return max(1, math.ceil(estimate.seconds - running_for))
