"""Medians and ratios of noisy timings. Rounds are interleaved, so that a slow minute affects all contestants."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.arena import ContestantFailed
from benchmarks.contestants import Contestant, Settings

T = TypeVar("T")


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the rounds' ratios. The two values of a round were measured within seconds of each other."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


Tried = list[tuple[Settings, float]]
"""Pairs of settings and score."""


async def try_all(
    contestants: Sequence[tuple[Contestant, Sequence[Settings]]],
    score: Callable[[Contestant, Settings], Awaitable[float]],
    *,
    optional: Collection[Contestant],
) -> tuple[dict[str, Tried], list[str]]:
    """Warm up each contestant with each of its settings. Leave out an optional one that fails on this machine."""
    found: dict[str, Tried] = {}
    failures: list[str] = []
    for contestant, choices in contestants:
        try:
            found[contestant.name] = [(choice, await score(contestant, choice)) for choice in choices]
        except (ContestantFailed, TimeoutError) as error:
            if contestant not in optional:
                raise
            failures.append(str(error) or f"{contestant.name} did not finish in time.")
    return found, failures


def best(tried: Tried) -> Settings:
    return max(tried, key=lambda one: one[1])[0]


async def interleaved(
    rounds: int, contestants: Sequence[Contestant], once: Callable[[Contestant], Awaitable[T]]
) -> dict[str, list[T]]:
    """Run every contestant once, then every contestant again."""
    found: dict[str, list[T]] = {one.name: [] for one in contestants}
    for _ in range(rounds):
        for one in contestants:
            found[one.name].append(await once(one))
    return found
