"""`make bench` runs all measurements or some: `make bench ARGS="--only drain,pick-up --jobs 50000 --json out.json"`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import uvloop
from rich.console import Console

from benchmarks import (
    announcements,
    batches,
    bulk_enqueue,
    claim_cost,
    convert,
    documents,
    drain,
    gateway,
    idle,
    janitor,
    mapping_choice,
    observability,
    page,
    parts,
    pick_up,
    review,
    unpack,
    vendors,
)
from benchmarks.arena import SERVER, Arena, ContestantFailed
from benchmarks.contestants import interpreter, peers
from benchmarks.options import Options
from benchmarks.report import Section, as_json, machine, show
from waybill_cli.local.postgres import EmbeddedPostgres
from waybill_cli.local.tether import die_with_make

MEASUREMENTS: dict[str, Callable[[Arena, Options], Awaitable[Section]]] = {
    "drain": drain.measure,
    "pick-up": pick_up.measure,
    "enqueue": bulk_enqueue.measure,
    "announce": announcements.measure,
    "claim-cost": claim_cost.measure,
    "parts": parts.measure,
    "observability": observability.measure,
    "idle": idle.measure,
    "documents": documents.measure,
    "vendors": vendors.measure,
    "auto": mapping_choice.measure,
    "gateway": gateway.measure,
    "unpack": unpack.measure,
    "convert": convert.measure,
    "batches": batches.measure,
    "review": review.measure,
    "janitor": janitor.measure,
}


async def run(
    arena: Arena, options: Options, names: list[str], console: Console, results: Path | None
) -> dict[str, Any]:
    if (task := asyncio.current_task()) is not None:
        # SIGTERM cancels like Ctrl-C, so that every process we started is stopped.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    connection = await asyncpg.connect(arena.server.url)
    facts = machine(await connection.fetchval("SHOW server_version"))
    await connection.close()
    found: dict[str, Any] = {"machine": facts}
    for name in names:
        started, load = time.perf_counter(), os.getloadavg()[0]
        section = await MEASUREMENTS[name](arena, options)
        show(section, console)
        if results is not None:  # at once, so that what a later measurement breaks loses nothing
            page.write(results, {name: section}, {name: page.circumstances(facts, (load, os.getloadavg()[0]))})
        found[name] = {**as_json(section), "took_seconds": round(time.perf_counter() - started, 1)}
    return found


def main() -> None:
    die_with_make()
    arguments = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 120)
    progress = Console(stderr=True, style="dim")
    known, absent = ([], []) if arguments.no_peers else peers(arguments.peers)
    for sentence in absent:
        console.print(sentence)
    options = Options(
        jobs=arguments.jobs,
        rounds=arguments.rounds,
        samples=arguments.samples,
        rows=arguments.rows,
        seconds=arguments.seconds,
        peers=tuple(known),
        peers_python=None if arguments.no_peers else interpreter(arguments.peers),
        say=lambda line: progress.print(line, highlight=False),
    )
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as home, EmbeddedPostgres.temporary(settings=SERVER) as server:
        found = uvloop.run(run(Arena(server, Path(home)), options, arguments.only, console, arguments.page))
    found["took_seconds"] = round(time.perf_counter() - started, 1)
    found["absent"] = absent
    facts = found["machine"]
    console.print(
        f"\n{facts['cores']} cores ({facts['cpu']}), Python {facts['python']}, Postgres {facts['postgres']} with fsync,"
        f" commit {facts['commit']}, {found['took_seconds'] / 60:.0f} minutes",
        highlight=False,
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", type=_names, default=list(MEASUREMENTS), help=f"some of {','.join(MEASUREMENTS)}")
    parser.add_argument("--jobs", type=_many, default=100_000, help="jobs per round of draining and enqueuing")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=300, help="single jobs to pick up, in all rounds together")
    parser.add_argument("--rows", type=int, default=1_000_000, help="queued, finished and churned rows in claim-cost")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to watch idle workers")
    parser.add_argument("--json", type=Path, help="also write all numbers to this file")
    parser.add_argument("--page", type=Path, help="also write the results into this page (docs/performance.md)")
    parser.add_argument("--peers", type=Path, help="the environment that the peers are installed in")
    parser.add_argument("--no-peers", action="store_true", help="measure Waybill and the floor only")
    return parser.parse_args()


def _many(text: str) -> int:
    # Completions come in batches of up to 2,000, and the first ones pay for warming up.
    if int(text) < 5000:
        raise argparse.ArgumentTypeError("at least 5,000 jobs are needed for a meaningful measurement")
    return int(text)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := sorted(set(names) - set(MEASUREMENTS)):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; choose from {', '.join(MEASUREMENTS)}")
    return names


if __name__ == "__main__":
    try:
        main()
    except ContestantFailed as error:
        sys.exit(str(error))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)
