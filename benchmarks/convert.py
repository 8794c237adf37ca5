"""Measures what a person waits for: a large upload, the list of many jobs, the queue's page, and upload to "Ready".

It uses real processes and a real Postgres. Where there is something to compare with, both run in the same turns. The
other numbers are times on this machine, reported together with its load.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import job_list, large_upload, upload_to_ready
from benchmarks.arena import Arena
from benchmarks.contestants import WAYBILL
from benchmarks.drain import Drained, drain
from benchmarks.figures import Spread, paired_ratio, percentile
from benchmarks.job_list import Lists, Page, Rate
from benchmarks.large_upload import Uploads
from benchmarks.options import Options
from benchmarks.product import connected, key, product
from benchmarks.report import Check, Section
from benchmarks.services import Service, free_port, running
from benchmarks.upload_to_ready import Ready

_MANY, _SOME, _ONE = "many", "some", "one"
"""Three tenants: with a hundred thousand jobs, with five hundred, and with one at a time."""

_TRIGGERS = (
    "DROP TRIGGER conversion_follows_job ON jobs",
    "DROP TRIGGER conversion_leaves_with_job ON jobs",
)


async def measure(arena: Arena, options: Options) -> Section:
    load = os.getloadavg()[0]
    uploads, lists, page = await _serving(arena, options)
    waits = await _converting(arena, options)
    triggers = await _following(arena, options)
    return _section(uploads, lists, page, waits, triggers, (load, os.getloadavg()[0]))


async def _serving(arena: Arena, options: Options) -> tuple[Uploads, Lists, Page]:
    """Measure the API alone; no worker takes the jobs of the uploads."""
    home = arena.home / "serving"
    async with (
        arena.database(WAYBILL) as url,
        connected(url) as connection,
        product(url, home) as running,
        _bare("sink", url, home) as sink,
        _bare("question", url, home) as question,
    ):
        many, some, one = [await key(connection, tenant) for tenant in (_MANY, _SOME, _ONE)]
        # Uploads come first: what one adds to memory shows best in a process that has done little yet.
        uploads = await large_upload.measure(options, running.api, sink, one, home)
        options.say(f"convert: writing {job_list.JOBS:,} jobs")
        await job_list.fill(connection, _MANY, job_list.JOBS)
        await job_list.fill(connection, _SOME, job_list.ROWS)
        await connection.execute("VACUUM ANALYZE")
        lists = await job_list.lists(options, running.api, question, many, f"tenant:{_MANY}", connection)
        page = await job_list.page(options, running.api, some, f"tenant:{_SOME}", connection)
    return uploads, lists, page


async def _converting(arena: Arena, options: Options) -> Ready:
    async with (
        arena.database(WAYBILL) as url,
        connected(url) as connection,
        product(url, arena.home / "converting", converting=True) as running,
    ):
        return await upload_to_ready.measure(
            options, running, await key(connection, _ONE), f"tenant:{_ONE}", connection
        )


async def _following(arena: Arena, options: Options) -> dict[str, list[Drained]]:
    """Drain no-op jobs with the triggers that keep conversions up to date, and without them."""
    found: dict[str, list[Drained]] = {"with": [], "without": []}
    for number in range(options.rounds):
        options.say(f"convert: draining with and without triggers, round {number + 1}")
        found["with"].append(await drain(arena, WAYBILL, {}, options.jobs))
        found["without"].append(await drain(arena, WAYBILL, {}, options.jobs, without=_TRIGGERS))
    return found


@contextlib.asynccontextmanager
async def _bare(app: str, url: str, home: Path) -> AsyncIterator[Service]:
    port = free_port()
    settings = {"BENCH_APP": app, "BENCH_PORT": str(port), "WAYBILL_DATABASE_URL": url}
    async with running("benchmarks.bare_servers", home / app, port, settings) as service:
        yield service


def _section(
    uploads: Uploads,
    lists: Lists,
    page: Page,
    waits: Ready,
    triggers: dict[str, list[Drained]],
    load: tuple[float, float],
) -> Section:
    upload = paired_ratio(uploads.ours, uploads.sink)
    remembered = paired_ratio(lists.remembered.per_second, lists.question.per_second)
    changing = paired_ratio(lists.changing.per_second, lists.question.per_second)
    rates = {name: [one.per_second for one in drained] for name, drained in triggers.items()}
    followed = paired_ratio(rates["with"], rates["without"])
    served = {name: statistics.median(one.postgres for one in drained) for name, drained in triggers.items()}
    return Section(
        title="What a person waits for",
        heading=("", "median", "lowest", "highest", "of it"),
        rows=[
            _row(f"upload of {large_upload.SIZE // 2**20} MB, MB/s", uploads.ours, "{:,.0f}"),
            _row("  bare Starlette sink", uploads.sink, "{:,.0f}", f"{upload:.0%}"),
            _row("  written and flushed by a plain loop", uploads.written, "{:,.0f}"),
            _row(f"list of {job_list.JOBS:,} jobs, cached, requests/s", lists.remembered.per_second, "{:,.0f}"),
            _row(f"  changing {job_list.CHANGES} times a second", lists.changing.per_second, "{:,.0f}"),
            _row("  FastAPI, SELECT 1", lists.question.per_second, "{:,.0f}", f"{remembered:.0%}, {changing:.0%}"),
            _row("  after a change, ms", lists.anew, "{:.1f}"),
            _row(f"page of {job_list.ROWS} rows, cached, ms", page.remembered, "{:.1f}"),
            _row("  after a change", page.anew, "{:.1f}"),
            _row("upload to complete, one page, ms", waits.complete, "{:.0f}"),
            _row("  until the stream reports it", waits.told, "{:.0f}"),
            _row("draining no-op jobs, jobs/s", rates["with"], "{:,.0f}"),
            _row("  without the triggers", rates["without"], "{:,.0f}", f"{followed:.0%}"),
        ],
        checks=[
            Check.at_least(f"a {large_upload.SIZE // 2**20} MB upload, to a bare sink", upload, 0.6),
            Check.at_most("memory it adds to the API's process", max(uploads.growth), 32, "{:.1f} MB"),
            Check.at_least("the list, to FastAPI with one query", remembered, 0.6),
            Check.at_least(f"the same, changing {job_list.CHANGES} times a second", changing, 0.6),
            Check.below(f"the page with {job_list.ROWS} rows", statistics.median(page.anew), 50, "{:.1f} ms"),
            Check.below("upload to complete, p50", statistics.median(waits.complete), 300, "{:.0f} ms"),
            Check.below("upload until the stream reports it, p50", statistics.median(waits.told), 300, "{:.0f} ms"),
        ],
        notes=[
            *_processor(uploads, lists, page),
            *_steps(waits),
            f"Postgres per no-op job: {served['with']:.1f} µs with the triggers, {served['without']:.1f} µs without.",
            f"The machine's load was {load[0]:.1f} before and {load[1]:.1f} after, on {os.cpu_count()} cores.",
        ],
        numbers={
            "uploads": asdict(uploads),
            "lists": asdict(lists),
            "page": asdict(page),
            "ready": asdict(waits),
            "triggers": {name: [asdict(one) for one in drained] for name, drained in triggers.items()},
            "load": load,
            "ratios": {"upload": upload, "remembered": remembered, "changing": changing, "triggers": followed},
        },
    )


def _row(name: str, values: Sequence[float], form: str, ratio: str = "") -> tuple[str, ...]:
    spread = Spread.of(values)
    return (name, form.format(spread.median), form.format(spread.low), form.format(spread.high), ratio)


def _processor(uploads: Uploads, lists: Lists, page: Page) -> list[str]:
    """Processor times, which depend little on what else the machine is doing."""
    ours, sink = statistics.median(uploads.processor), statistics.median(uploads.processor_sink)
    remembered, anew = statistics.median(page.processor), statistics.median(page.processor_anew)
    one, changing, question = (_cpu(rate) for rate in (lists.remembered, lists.changing, lists.question))
    return [
        f"Processor time of an upload: {ours:.0f} ms; of the sink: {sink:.0f} ms.",
        f"Of a list: {one} µs, while it changes {changing} µs; of FastAPI with one query: {question} µs.",
        f"Of the page, {page.bytes:,} bytes: {remembered:.0f} ms cached, {anew:.0f} ms after a change.",
    ]


def _steps(waits: Ready) -> list[str]:
    answered, claimed, finishing = (statistics.median(each) for each in (waits.answered, waits.claimed, waits.finished))
    complete, told = percentile(waits.complete, 99), percentile(waits.told, 99)
    return [
        f"Of {len(waits.complete)} documents p99: complete {complete:.0f} ms, reported {told:.0f} ms.",
        f"Steps, medians: claimed at {claimed:.0f} ms, answered {answered:.0f}, finishing {finishing:.0f}.",
        f"In the gateway: {', '.join(f'{name} {took:.1f} ms' for name, took in waits.gateway.items())}.",
    ]


def _cpu(rate: Rate) -> str:
    return f"{statistics.median(rate.microseconds):,.0f}"
