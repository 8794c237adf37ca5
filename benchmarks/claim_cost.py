"""Measures what a claim costs the server in a small table, in a huge one, in one that vacuum cannot clean, and under
thousands of caps.

The claims are the engine's own, on connections like a worker's. After each claim the jobs are finished and as many new
ones are queued, so the table keeps its size, and the measurements differ in that size only.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncpg

from benchmarks import prefill
from benchmarks.arena import Arena
from benchmarks.contestants import WAYBILL
from benchmarks.handlers import NOOP
from benchmarks.options import Options
from benchmarks.report import Check, Section
from benchmarks.server_log import ServerLog
from waybill.config import DatabaseUrl
from waybill.db import Database
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill_engine.claim import claim
from waybill_engine.fair_share import FairShare
from waybill_engine.finish import succeed
from waybill_engine.lanes import LaneScan
from waybill_engine.lease import WorkerInfo, register

_SMALL = 1000
_CLAIMS = {1: 150, 100: 60}
"""Jobs per claim, and how many such claims. One job shows what finding costs, a hundred what taking costs."""
_CAPS = 5_000
"""A cap for each of so many tenants; those that have work are among them."""
_RECOVERED_WITHIN = 180.0
_CHURN_AT_MOST = 300.0
"""Seconds. An engine that cannot cope with dead rows would take hours; we report how far it came by then."""


@dataclass(frozen=True)
class Cost:
    """Milliseconds per claim of one job and of a hundred."""

    one: float
    hundred: float

    def to(self, other: Cost) -> float:
        """The ratio of the two, for one job or a hundred, whichever is worse."""
        return max(self.one / other.one, self.hundred / other.hundred)


@dataclass(frozen=True)
class Claims:
    """Runs the engine's claims in one database. Everything that depends on the engine's functions is in this class."""

    database: Database
    worker: WorkerInfo
    fair_share: FairShare
    log: ServerLog
    name: str

    @classmethod
    @contextlib.asynccontextmanager
    async def on(cls, arena: Arena, url: str, connection: Connection) -> AsyncIterator[Claims]:
        name = urlsplit(url).path.lstrip("/")
        log = ServerLog(arena.server.log)
        await log.watch(connection, name)
        database = Database(DatabaseUrl(url))
        worker = WorkerInfo(new_id(), "bench", "bench", 0, "bench", [NOOP.queue], [NOOP.name], 100)
        fair_share = FairShare()
        async with database.hot() as hot:
            await register(hot, worker, ttl=86400)
            lanes, rules = await LaneScan(worker.queues, worker.kinds).look(hot)
            fair_share.apply(rules)
            fair_share.found(lanes, fair_share.announcements)
        try:
            yield cls(database, worker, fair_share, log, name)
        finally:
            await database.close()

    async def cost(self, claims: dict[int, int] | None = None) -> Cost:
        found = {}
        for limit, times in (claims or _CLAIMS).items():
            self.log.restart()
            for _ in range(times + 5):
                async with self.database.hot() as connection:
                    await self._claim_and_finish(connection, limit)
            # The first claims also pay for planning and for reading the index.
            spent = [one.milliseconds for one in self.log.statements(self.name) if _is_claim(one.text)][5:]
            assert len(spent) >= times, "the statement that claims is not recognised any more"
            found[limit] = statistics.median(spent)
        return Cost(found[1], found[100])

    async def whole_cost(self) -> tuple[Cost, Cost]:
        """The cost of all statements of a claim, not only of the one that takes the jobs: the server's time, and the
        time that the worker waits, with every round trip and the commit."""
        served, waited = {}, {}
        for limit, times in _CLAIMS.items():
            spent, walls = [], []
            for _ in range(times + 5):
                async with self.database.hot() as connection:
                    self.log.restart()
                    started = time.perf_counter()
                    claimed_jobs = await claim(connection, self.worker.id, self.fair_share, limit)
                    walls.append((time.perf_counter() - started) * 1000)
                    statements = self.log.statements(self.name)
                    # The commit waits for the disk. A claim without caps commits, too, but the log does not say so.
                    spent.append(sum(one.milliseconds for one in statements if one.text not in ("BEGIN;", "COMMIT;")))
                    assert len(claimed_jobs) == limit, f"claimed {len(claimed_jobs)} of {limit}"
                    await succeed(connection, self.worker.id, [(one.id, one.token) for one in claimed_jobs])
                    await prefill.queued(connection, limit)
            served[limit], waited[limit] = statistics.median(spent[5:]), statistics.median(walls[5:])
        return Cost(served[1], served[100]), Cost(waited[1], waited[100])

    async def _claim_and_finish(self, connection: Connection, limit: int) -> None:
        claimed_jobs = await claim(connection, self.worker.id, self.fair_share, limit)
        assert len(claimed_jobs) == limit, f"claimed {len(claimed_jobs)} of {limit}"
        await succeed(connection, self.worker.id, [(claimed.id, claimed.token) for claimed in claimed_jobs])
        await prefill.queued(connection, limit)


def _is_claim(statement: str) -> bool:
    return "SET state = 'running'" in statement


async def in_small_table(arena: Arena) -> Cost:
    async with _table(arena) as (url, connection):
        await prefill.queued(connection, _SMALL)
        await connection.execute("VACUUM ANALYZE")
        async with Claims.on(arena, url, connection) as claims:
            return await claims.cost()


@dataclass(frozen=True)
class UnderCaps:
    """What whole claims cost without caps, and with one for every tenant."""

    free: Cost
    capped: Cost
    free_wait: Cost
    """How long the worker waits for them."""
    capped_wait: Cost


async def under_caps(arena: Arena) -> UnderCaps:
    async with _table(arena) as (url, connection):
        await prefill.queued(connection, _SMALL)
        await connection.execute("VACUUM ANALYZE")
        async with Claims.on(arena, url, connection) as claims:
            free, free_wait = await claims.whole_cost()
        await connection.execute(
            "INSERT INTO caps (tenant, most) SELECT 'tenant ' || n, 1000 FROM generate_series(0, $1::int - 1) AS n",
            _CAPS,
        )
        await connection.execute("VACUUM ANALYZE caps")
        async with Claims.on(arena, url, connection) as claims:
            capped, capped_wait = await claims.whole_cost()
    return UnderCaps(free, capped, free_wait, capped_wait)


async def in_huge_table(arena: Arena, rows: int) -> Cost:
    """Measure with `rows` queued rows and as many finished ones."""
    async with _table(arena) as (url, connection):
        await prefill.finished(connection, rows)
        await prefill.queued(connection, rows)
        await connection.execute("VACUUM ANALYZE", timeout=600)
        await connection.execute("CHECKPOINT", timeout=600)
        async with Claims.on(arena, url, connection) as claims:
            return await claims.cost()


@dataclass(frozen=True)
class Churned:
    jobs: int
    seconds: float
    cost: Cost
    """The cost while the transaction is open."""
    at_once: Cost
    """The cost right after the transaction ended."""
    recovered: Cost
    recovered_after: float


async def after_churn(arena: Arena, rows: int, small: Cost) -> Churned:
    """Run `rows` jobs through a real worker while another transaction stays open, then end the transaction."""
    async with _table(arena) as (url, connection):
        elsewhere: Connection = await asyncpg.connect(url)
        await elsewhere.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await elsewhere.fetchval("SELECT pg_current_xact_id()")  # from here on vacuum cannot remove dead rows
        await prefill.queued(connection, rows)
        await connection.execute("ANALYZE jobs")
        last = await connection.fetchval(WAYBILL.nth, rows - 1)
        started = time.perf_counter()
        async with arena.worker(WAYBILL, url) as worker:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHURN_AT_MOST):
                    await worker.until(connection, WAYBILL.done, last)
                    while await connection.fetchval(WAYBILL.left):
                        await asyncio.sleep(1)
        seconds = time.perf_counter() - started
        churned = await connection.fetchval("SELECT count(*) FROM jobs WHERE state = 'succeeded'")
        await prefill.queued(connection, _SMALL)
        async with Claims.on(arena, url, connection) as claims:
            few = {1: 15, 100: 10}  # each claim may be slow
            cost = await claims.cost(few)
            await elsewhere.execute("ROLLBACK")
            await elsewhere.close()
            ended = time.perf_counter()
            at_once = recovered = await claims.cost(few)
            while recovered.to(small) > 1.3 and time.perf_counter() - ended < _RECOVERED_WITHIN:
                await asyncio.sleep(2)
                recovered = await claims.cost(few)
        return Churned(churned, seconds, cost, at_once, recovered, time.perf_counter() - ended)


@contextlib.asynccontextmanager
async def _table(arena: Arena) -> AsyncIterator[tuple[str, Connection]]:
    async with arena.database(WAYBILL) as url:
        connection: Connection = await asyncpg.connect(url)
        try:
            yield url, connection
        finally:
            await connection.close()


async def measure(arena: Arena, options: Options) -> Section:
    rows = options.rows
    options.say(f"claim-cost: {_SMALL:,} jobs")
    before = await in_small_table(arena)
    options.say(f"claim-cost: {rows:,} queued and {rows:,} finished")
    huge = await in_huge_table(arena, rows)
    after = await in_small_table(arena)
    # Measured before and after, so that a slow minute of the machine does not look like a cost.
    small = Cost(statistics.mean((before.one, after.one)), statistics.mean((before.hundred, after.hundred)))
    options.say(f"claim-cost: {rows:,} jobs churn beside an open transaction")
    churned = await after_churn(arena, rows, small)
    options.say(f"claim-cost: {_CAPS:,} caps")
    return _section(rows, small, huge, churned, await under_caps(arena))


def _section(rows: int, small: Cost, huge: Cost, churned: Churned, caps: UnderCaps) -> Section:
    recovery = f"{churned.recovered_after:.0f} s after it ended"
    if churned.recovered.to(small) > 1.3:
        recovery = f"not recovered {recovery}"
    named = {
        f"{_SMALL:,} queued": small,
        f"{rows:,} queued, {rows:,} finished": huge,
        f"{churned.jobs:,} churned in {churned.seconds:.0f} s, transaction open": churned.cost,
        "as soon as it ended": churned.at_once,
        recovery: churned.recovered,
    }
    whole = {
        "all statements, without caps": caps.free,
        f"all statements, {_CAPS:,} caps": caps.capped,
    }
    waits = {
        "what the worker waits, without caps": caps.free_wait,
        f"what the worker waits, {_CAPS:,} caps": caps.capped_wait,
    }
    return Section(
        title="What a claim costs the server, ms",
        heading=("", "of 1 job", "", "of 100 jobs", ""),
        rows=[
            (
                name,
                f"{cost.one:.3f}",
                f"{cost.one / to.one:.2f} ×",
                f"{cost.hundred:.3f}",
                f"{cost.hundred / to.hundred:.2f} ×",
            )
            for costs, to in ((named, small), (whole, caps.free), (waits, caps.free_wait))
            for name, cost in costs.items()
        ],
        checks=[
            Check.at_most(f"with {rows:,} queued and finished", huge.to(small), 1.3),
            Check.at_most(f"after {rows:,} churned, transaction open", churned.cost.to(small), 2.0),
            Check.at_most("after the transaction ended", churned.recovered.to(small), 1.3),
            Check.at_most(f"with {_CAPS:,} caps", caps.capped.to(caps.free), 1.5),
            Check.at_most(f"what the worker waits with {_CAPS:,} caps", caps.capped_wait.to(caps.free_wait), 1.5),
        ],
        notes=[]
        if churned.jobs >= rows
        else [f"Only {churned.jobs:,} of {rows:,} jobs had churned after {churned.seconds:.0f} s."],
        numbers={
            "rows": rows,
            "milliseconds": {
                name: {"one": cost.one, "hundred": cost.hundred} for name, cost in (named | whole | waits).items()
            },
            "huge_to_small": huge.to(small),
            "churned": churned.jobs,
            "churn_seconds": churned.seconds,
            "open_transaction_to_small": churned.cost.to(small),
            "recovered_after_seconds": churned.recovered_after,
            "capped_to_uncapped": caps.capped.to(caps.free),
            "capped_to_uncapped_wait": caps.capped_wait.to(caps.free_wait),
        },
    )
