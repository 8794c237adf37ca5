"""Measures what traces cost a worker that drains jobs of 10 ms: all of them, one in a hundred, and a dead collector.

All of them run in the same rounds. The collector of the traced workers only reads and answers, in this process; the
dead one is a port on which nobody listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import statistics
from collections.abc import AsyncIterator
from dataclasses import replace

from benchmarks.arena import Arena
from benchmarks.contestants import WAYBILL, Contestant
from benchmarks.drain import Drained, drain
from benchmarks.figures import interleaved, paired_ratio
from benchmarks.handlers import TEN_MS
from benchmarks.options import Options
from benchmarks.report import Check, Section

_SHARE = 0.05
"""Of the jobs of a round: a job of 10 ms takes a hundred times as long as one that does nothing."""

_LEAST = {"traces, 100 %": 0.90, "traces, 1 %": 0.98, "traces, dead collector": 0.98}


def _observed(name: str, **settings: str) -> Contestant:
    ours = {"BENCH_KIND": TEN_MS.name, "WAYBILL_WORKER_METRICS_PORT": "0", **settings}
    return replace(WAYBILL, name=name, environment={**WAYBILL.environment, **ours})


async def measure(arena: Arena, options: Options) -> Section:
    jobs = max(500, int(options.jobs * _SHARE))
    async with _collector() as endpoint, _nobody() as dead:
        traced = {"WAYBILL_WORKER_METRICS_PORT": "9082", "WAYBILL_OTLP_ENDPOINT": endpoint}
        off = _observed("nothing on")
        contestants = [
            off,
            _observed("traces, 100 %", **traced),
            _observed("traces, 1 %", **traced, WAYBILL_TRACE_SAMPLE_RATIO="0.01"),
            _observed("traces, dead collector", **{**traced, "WAYBILL_OTLP_ENDPOINT": dead}),
        ]

        async def once(contestant: Contestant) -> Drained:
            options.say(f"observability: {contestant.name}")
            return await drain(arena, contestant, {}, jobs)

        await once(off)  # to warm everything up
        found = await interleaved(options.rounds, contestants, once)
    speeds = {name: [one.per_second for one in drained] for name, drained in found.items()}
    costs = {name: statistics.median(one.worker for one in drained) for name, drained in found.items()}
    ratios = {name: paired_ratio(speeds[name], speeds[off.name]) for name in speeds}
    rows = [
        (name, f"{statistics.median(speeds[name]):,.0f}", f"{ratios[name]:.3f}", f"{costs[name]:.0f} us")
        for name in speeds
    ]
    return Section(
        "Observability: jobs of 10 ms per second, one worker process",
        ("", "jobs/s", "of nothing on", "worker's processor time per job"),
        rows,
        [Check.at_least(f"{name}, of nothing on", ratios[name], least) for name, least in _LEAST.items()],
        [f"{jobs} jobs a round, {options.rounds} rounds; metrics are on wherever traces are."],
        {"per_second": speeds, "ratios": ratios, "worker_us_per_job": costs},
    )


@contextlib.asynccontextmanager
async def _collector() -> AsyncIterator[str]:
    """Takes spans and forgets them."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@contextlib.asynccontextmanager
async def _nobody() -> AsyncIterator[str]:
    """A port that is taken, and refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
