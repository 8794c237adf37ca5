"""Measures how long a single job waits, from the return of the enqueuer's commit to the start of its handler.

There is one idle worker and one job at a time, with a random pause between two jobs so that no contestant's polls can
align with them. Enqueuer and handler run in the contestant's own processes and read the machine's monotonic clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
from collections.abc import AsyncIterator

from benchmarks.arena import Arena
from benchmarks.contestants import FLOOR, WAYBILL, Contestant, Settings, shown
from benchmarks.figures import best, percentile, try_all
from benchmarks.options import Options
from benchmarks.report import Check, Section

_WARM_UP = 20
_PAUSE = (0.02, 0.12)
_LOST_AFTER = 30.0


class _Reports(asyncio.DatagramProtocol):
    """Receives the handlers' reports of when they started."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[tuple[int, int]] = asyncio.Queue()

    def datagram_received(self, data: bytes, address: object) -> None:
        sample, at = data.split()
        self._heard.put_nowait((int(sample), int(at)))

    async def started(self, sample: int) -> int:
        async with asyncio.timeout(_LOST_AFTER):
            while True:
                heard, at = await self._heard.get()
                if heard == sample:
                    return at


@contextlib.asynccontextmanager
async def _reports() -> AsyncIterator[tuple[_Reports, int]]:
    transport, reports = await asyncio.get_running_loop().create_datagram_endpoint(_Reports, ("127.0.0.1", 0))
    try:
        yield reports, transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


async def pick_ups(arena: Arena, contestant: Contestant, settings: Settings, samples: int) -> list[float]:
    """Milliseconds that each job waited. Negative if its handler started before the enqueuer's commit returned."""
    async with arena.database(contestant) as url:
        return [wait async for wait in waits(arena, contestant, url, settings, samples)]


async def waits(
    arena: Arena, contestant: Contestant, url: str, settings: Settings, samples: int
) -> AsyncIterator[float]:
    """The same on an existing database, as an iterator."""
    async with (
        _reports() as (reports, port),
        arena.worker(contestant, url, settings, port=port),
        arena.feeder(contestant, url) as feeder,
    ):
        for sample in range(_WARM_UP + samples):
            committed = await feeder.enqueue(sample)
            started = await reports.started(sample)
            if sample >= _WARM_UP:
                yield (started - committed) / 1e6
            await asyncio.sleep(random.uniform(*_PAUSE))


async def measure(arena: Arena, options: Options) -> Section:
    contestants = [WAYBILL, *options.peers, FLOOR]

    async def warm_up(contestant: Contestant, settings: Settings) -> float:
        options.say(f"pick-up: warming {contestant.name} up, {shown(settings)}")
        return -statistics.median(await pick_ups(arena, contestant, settings, 30))

    tried, failures = await try_all(
        [(one, one.pick_up_choices) for one in contestants], warm_up, optional=options.peers
    )
    chosen = {name: best(scores) for name, scores in tried.items()}
    waits: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(options.rounds):
        for one in (one for one in contestants if one.name in chosen):
            options.say(f"pick-up: {one.name}")
            waits[one.name] += await pick_ups(arena, one, chosen[one.name], options.samples // options.rounds)
    return _section(waits, chosen, failures)


def _section(waits: dict[str, list[float]], chosen: dict[str, Settings], failures: list[str]) -> Section:
    found = {
        name: {
            "samples": len(values),
            "p50": percentile(values, 50),
            "p90": percentile(values, 90),
            "p99": percentile(values, 99),
            "highest": max(values),
        }
        for name, values in waits.items()
    }
    ours = found[WAYBILL.name]
    others = {name: values["p50"] for name, values in found.items() if name not in (WAYBILL.name, FLOOR.name)}
    return Section(
        title="Picking up a single job, ms from commit to handler start",
        heading=("", "p50", "p90", "p99", "highest", "settings"),
        rows=[
            (name, *(f"{values[column]:.2f}" for column in ("p50", "p90", "p99", "highest")), shown(chosen[name]))
            for name, values in found.items()
        ],
        checks=[
            *(Check.below(f"p50, to {name}'s", ours["p50"], theirs, "{:.2f} ms") for name, theirs in others.items()),
            Check.at_most("p50", ours["p50"], 1.2, "{:.2f} ms"),
            Check.at_most("p99 to p50", ours["p99"] / ours["p50"], 3.0),
        ],
        notes=failures,
        numbers={"milliseconds": found, "settings": chosen, "waits": waits},
    )
