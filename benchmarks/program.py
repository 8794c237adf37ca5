"""The four verbs that every contestant's program has. Each runs in a process of its own.

`prepare` makes its tables, `fill N` enqueues N no-op jobs, `work` runs one worker, and `feed` enqueues one job for
every line on its standard input. Only the standard library is imported here: peers run in an environment without
Waybill.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache
from typing import Any

Verb = Coroutine[Any, Any, None]

URL = os.environ.get("BENCH_DATABASE_URL", "")
SETTINGS: dict[str, Any] = json.loads(os.environ.get("BENCH_SETTINGS", "{}"))

_PORT = int(os.environ.get("BENCH_PORT", "0"))


@cache
def _socket() -> socket.socket:
    """To the benchmark. It is opened when it is needed: tests import this module, too, and would leave it open."""
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def handler_started(sample: int) -> None:
    """Report to the benchmark when the handler of this sample started. The handler does this first."""
    at = time.monotonic_ns()  # the same clock for all processes of a machine, including node's
    _socket().sendto(f"{sample} {at}".encode(), ("127.0.0.1", _PORT))


async def feed(execute: Callable[[str], Awaitable[object]], enqueue: Callable[[int], Awaitable[object]]) -> None:
    """Enqueue one job per line (its sample number), and answer with the time at which its commit returned.

    The transaction is opened and committed here, on the driver's bare connection. Otherwise the time that a library
    spends after its own commit would count in its favour.
    """
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        await execute("BEGIN")
        await enqueue(int(line))
        await execute("COMMIT")
        print(time.monotonic_ns(), flush=True)


def main(
    run: Callable[[Verb], object],
    *,
    prepare: Callable[[], Verb],
    fill: Callable[[int], Verb],
    feed: Callable[[], Verb],
    work: Callable[[], Verb] | None = None,
) -> None:
    match sys.argv[1:]:
        case ["prepare"]:
            run(prepare())
        case ["fill", jobs]:
            run(fill(int(jobs)))
        case ["work"] if work is not None:  # Waybill's worker is a separate program
            run(work())
        case ["feed"]:
            run(feed())
        case other:
            sys.exit(f"prepare, fill N, work or feed, not {other}")
