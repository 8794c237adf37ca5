"""Measures what announcing jobs costs when many clients enqueue at once on a disk that takes its time.

Every client commits one job at a time. Three servers do the same: one whose announcements are ours, one that announces
nothing, and one that notifies in every transaction. A worker is there to listen and to relay; it serves another queue,
because its claims would count against whoever announces. The slow disk is `commit_delay`: whoever writes the log to
disk waits that long before it does.
"""

from __future__ import annotations

import asyncio
import time

import asyncpg

from benchmarks.arena import Arena
from benchmarks.contestants import WAYBILL
from benchmarks.figures import Spread, paired_ratio
from benchmarks.handlers import NOOP
from benchmarks.options import Options
from benchmarks.report import Check, Section
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue

_CLIENTS = 24
_SECONDS = 4.0
_WARM_UP = 1.0
_SLOW_DISK = "SET commit_delay = 5000; SET commit_siblings = 0"
_LISTENS = "SELECT count(*) > 0 FROM workers WHERE state = 'active'"

_FUNCTION = """
CREATE OR REPLACE FUNCTION waybill_announce(
    channel text, topic text, since bigint DEFAULT NULL, jobs bigint DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {} END $$
"""

_WAYS = {
    "Waybill": "",
    "no announcements": "NULL;",
    "NOTIFY in every transaction": "PERFORM pg_notify(channel, waybill_announcement(topic, since, jobs));",
}


async def enqueues_per_second(arena: Arena, body: str) -> float:
    """Jobs per second that all clients enqueue together, announced by a function with this body, or by ours."""
    async with arena.database(WAYBILL) as url:
        admin: Connection = await asyncpg.connect(url)
        if body:
            await admin.execute(_FUNCTION.format(body))
        async with arena.worker(WAYBILL, url) as worker:
            await worker.until(admin, _LISTENS)
            clients: list[Connection] = [await asyncpg.connect(url) for _ in range(_CLIENTS)]
            for client in clients:
                await client.execute(_SLOW_DISK)
            await _enqueue(clients, _WARM_UP)
            began = time.perf_counter()
            enqueued = await _enqueue(clients, _SECONDS)
            rate = enqueued / (time.perf_counter() - began)
            for client in clients:
                await client.close()
        await admin.close()
    return rate


async def _enqueue(clients: list[Connection], seconds: float) -> int:
    async def one_after_the_other(number: int, client: Connection) -> int:
        count = 0
        while time.perf_counter() < until:
            await enqueue(client, NewJob(NOOP, f"tenant-{number}", queue="elsewhere"))
            count += 1
        return count

    until = time.perf_counter() + seconds
    return sum(await asyncio.gather(*(one_after_the_other(*one) for one in enumerate(clients))))


async def measure(arena: Arena, options: Options) -> Section:
    rates: dict[str, list[float]] = {name: [] for name in _WAYS}
    for _ in range(options.rounds):
        for name, body in _WAYS.items():
            options.say(f"announcing: {name}")
            rates[name].append(await enqueues_per_second(arena, body))
    ratio = paired_ratio(rates["Waybill"], rates["no announcements"])
    return Section(
        title=f"Single enqueues by {_CLIENTS} clients at once, each flush takes 5 ms, jobs/s",
        heading=("", "median", "lowest", "highest"),
        rows=[
            (name, f"{spread.median:,.0f}", f"{spread.low:,.0f}", f"{spread.high:,.0f}")
            for name, spread in ((name, Spread.of(found)) for name, found in rates.items())
        ],
        checks=[Check.at_least("announced to unannounced enqueues", ratio, 0.9)],
        numbers={"clients": _CLIENTS, "per_second": rates, "announced_to_unannounced": ratio},
    )
