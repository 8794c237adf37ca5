"""How long a document will take, judged by recent ones of about its size; nothing where that says little."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SAMPLES = 200
"""How many recent conversions are looked at."""
_NEIGHBOURS = 15
_FEWEST = 5
_WIDEST = 3.0
"""A middle half that spreads wider than this factor is no estimate but a guess."""
_TWICE_AS_BIG = math.log(4)
"""Documents more than four times as big or small are no neighbours."""


@dataclass(frozen=True, slots=True)
class Estimate:
    seconds: float
    """The median."""
    latest: float
    """What takes longer than this is an outlier, of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Noted:
    """What the janitor has noted of many documents of a size: their quartiles in seconds."""

    samples: int
    low: float
    median: float
    high: float


class Estimates:
    def __init__(self, samples: Sequence[tuple[int, float]], noted: Mapping[int, Noted] | None = None) -> None:
        """`noted` are durations by the logarithm of the size to base 2: for when the jobs themselves are gone."""
        self._noted = noted or {}
        self._samples = [(math.log(max(size, 1)), seconds) for size, seconds in samples if seconds > 0]

    def of(self, size: int) -> Estimate | None:
        """For a document of so many bytes; None if it would be a poor one."""
        here = math.log(max(size, 1))
        # By distance alone: among equals the newest come first, and not the quickest.
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
        """Whole seconds that are left, at least 1; None when nobody can say."""
        estimate = self.of(size)
        if estimate is None or running_for > estimate.latest:
            return None
        return max(1, math.ceil(estimate.seconds - running_for))
