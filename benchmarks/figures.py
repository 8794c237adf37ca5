"""Timings are noisy. Rounds are interleaved, so that a slow minute slows everybody, and the middle one counts."""

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
    """The median of the rounds' ratios: the two of a round were measured within seconds of each other."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


Tried = list[tuple[Settings, float]]
"""Settings, and what each scored."""


async def try_all(
    contestants: Sequence[tuple[Contestant, Sequence[Settings]]],
    score: Callable[[Contestant, Settings], Awaitable[float]],
    *,
    optional: Collection[Contestant],
) -> tuple[dict[str, Tried], list[str]]:
    """Warm everybody up with each of their settings, and leave out an optional one that does not work here."""
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
    """Everybody once, then everybody again."""
    found: dict[str, list[T]] = {one.name: [] for one in contestants}
    for _ in range(rounds):
        for one in contestants:
            found[one.name].append(await once(one))
    return found
