"""Measures how many no-op jobs per second one worker process completes, with all contestants in the same rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import asyncpg

from benchmarks.arena import Arena
from benchmarks.contestants import FLOOR, WAYBILL, WAYBILL_TIMES_FOUR, Contestant, Settings, shown
from benchmarks.figures import Spread, Tried, best, interleaved, paired_ratio, try_all
from benchmarks.options import Options
from benchmarks.processor import seconds_of
from benchmarks.report import Check, Section
from waybill.db.database import Connection

_TARGETS = {"PGQueuer": 3.5, "graphile-worker": 2.0, FLOOR.name: 0.6}


@dataclass(frozen=True)
class Drained:
    per_second: float
    worker: float
    """Microseconds of processor time per job."""
    postgres: float


async def drain(
    arena: Arena, contestant: Contestant, settings: Settings, jobs: int, *, without: Sequence[str] = ()
) -> Drained:
    """Time a drain from the first claim to the last completion. `without` is SQL that first removes something.

    The clock does not start at a completion: a contestant that writes completions late would have done much of the work
    before.
    """
    async with arena.database(contestant) as url:
        await arena.run(contestant, url, "fill", str(jobs))
        connection: Connection = await asyncpg.connect(url)
        for statement in without:
            await connection.execute(statement)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
        first = await connection.fetchval(contestant.nth, 0)
        last = await connection.fetchval(contestant.nth, jobs - 1)
        async with arena.worker(contestant, url, settings) as worker:
            await worker.until(connection, contestant.claimed, first)
            started = time.perf_counter()
            spent = seconds_of(worker.pid), seconds_of(arena.server.pid)
            # Counting costs the contestant time, so we watch the last job and count all of them once it is done.
            await worker.until(connection, contestant.done, last)
            while True:
                ended = time.perf_counter()
                if await connection.fetchval(contestant.left) == 0:
                    break
            worked, served = seconds_of(worker.pid) - spent[0], seconds_of(arena.server.pid) - spent[1]
        await connection.close()
    return Drained(jobs / (ended - started), worked / jobs * 1e6, served / jobs * 1e6)


async def measure(arena: Arena, options: Options) -> Section:
    def jobs_for(contestant: Contestant, part: float = 1.0) -> int:
        return max(300, int(options.jobs * contestant.share * part))

    contestants = [WAYBILL, *options.peers, FLOOR, WAYBILL_TIMES_FOUR]

    async def warm_up(contestant: Contestant, settings: Settings) -> float:
        options.say(f"drain: warming {contestant.name} up, {shown(settings)}")
        return (await drain(arena, contestant, settings, jobs_for(contestant, 0.3))).per_second

    tried, failures = await try_all([(one, one.choices) for one in contestants], warm_up, optional=options.peers)
    chosen = {name: best(scores) for name, scores in tried.items()}

    async def once(contestant: Contestant) -> Drained:
        options.say(f"drain: {contestant.name}")
        return await drain(arena, contestant, chosen[contestant.name], jobs_for(contestant))

    found = await interleaved(options.rounds, [one for one in contestants if one.name in chosen], once)
    return _section(options, found, chosen, tried, failures)


def _section(
    options: Options,
    found: Mapping[str, list[Drained]],
    chosen: Mapping[str, Settings],
    tried: Mapping[str, Tried],
    failures: Sequence[str],
) -> Section:
    rates = {name: [one.per_second for one in rounds] for name, rounds in found.items()}
    worker = {name: statistics.median(one.worker for one in rounds) for name, rounds in found.items()}
    postgres = {name: statistics.median(one.postgres for one in rounds) for name, rounds in found.items()}
    spreads = {name: Spread.of(values) for name, values in rates.items()}
    ours = rates[WAYBILL.name]
    ratios = {name: paired_ratio(ours, theirs) for name, theirs in rates.items() if name != WAYBILL.name}
    four_to_one = 1 / ratios[WAYBILL_TIMES_FOUR.name]
    return Section(
        title=f"Draining {options.jobs:,} no-op jobs, jobs/s ({options.rounds} rounds)",
        heading=("", "median", "lowest", "highest", "Waybill is", "worker", "Postgres", "settings"),
        rows=[
            (
                name,
                f"{spread.median:,.0f}",
                f"{spread.low:,.0f}",
                f"{spread.high:,.0f}",
                f"{ratios[name]:.2f} ×" if name in ratios else "",
                f"{worker[name]:,.0f} µs",
                f"{postgres[name]:,.0f} µs",
                shown(chosen[name]),
            )
            for name, spread in spreads.items()
        ],
        checks=[
            *(
                Check.at_least(f"one Waybill process to {name}", ratios[name], least)
                for name, least in _TARGETS.items()
                if name in ratios
            ),
            Check.at_least("four Waybill processes to one", four_to_one, 1.0),
        ],
        notes=["Worker and Postgres: processor time per job.", *failures],
        numbers={
            "jobs": options.jobs,
            "rounds": options.rounds,
            "jobs_per_second": rates,
            "waybill_is": ratios,
            "worker_microseconds_per_job": worker,
            "postgres_microseconds_per_job": postgres,
            "four_to_one": four_to_one,
            "settings": chosen,
            "tried": tried,
        },
    )
