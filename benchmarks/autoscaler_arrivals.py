"""What the simulated autoscaler has to do with: a quiet day, the end of a month, one large batch."""

from __future__ import annotations

import random
from collections.abc import Iterator

HOUR = 3600.0
BATCH = 10_000
"""Files that somebody uploads at once."""
BATCH_AT = 600.0

Arrivals = list[tuple[float, float]]


def duration(chance: random.Random, average: float) -> float:
    """Most documents are short, some are long: log-normal, a third of the time in the longest tenth."""
    spread = 0.8
    return average * chance.lognormvariate(-(spread**2) / 2, spread)


def poisson(chance: random.Random, per_second: float, begin: float, end: float) -> Iterator[float]:
    at = begin
    while (at := at + chance.expovariate(per_second)) < end:
        yield at


def quiet_day(seed: int = 7, *, hours: float = 3.0, per_second: float = 2.0, average: float = 3.0) -> Arrivals:
    """People upload now and then."""
    chance = random.Random(seed)
    return [(at, duration(chance, average)) for at in poisson(chance, per_second, 0.0, hours * HOUR)]


def month_end(seed: int = 7, *, hours: float = 3.0, average: float = 3.0) -> Arrivals:
    """The same, and every few minutes an accounting team sends what it has: some hundred documents in a minute."""
    chance = random.Random(seed)
    found = quiet_day(seed, hours=hours, average=average)
    at = 0.0
    while (at := at + chance.uniform(240.0, 900.0)) < (hours - 0.5) * HOUR:
        documents = chance.randint(300, 1_500)
        found += [(at + chance.uniform(0.0, 60.0), duration(chance, average)) for _ in range(documents)]
    return sorted(found)


def batch(seed: int = 7, *, average: float = 2.0) -> Arrivals:
    """A little traffic, and one batch of 10,000 files."""
    chance = random.Random(seed)
    found = quiet_day(seed, hours=1.0, per_second=0.5, average=average)
    return sorted(found + [(BATCH_AT, duration(chance, average)) for _ in range(BATCH)])


def documents(seed: int = 7, *, parse: float = 0.19) -> Arrivals:
    """The batch as documents to convert: seconds of a parser, as measured with invoices of 510 lines."""
    chance = random.Random(seed)
    return [(BATCH_AT, duration(chance, parse)) for _ in range(BATCH)]
