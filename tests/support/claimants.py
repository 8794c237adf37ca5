"""Workers that only claim, without processes. Each keeps its fair share for as long as it exists."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from support.engine import refresh, start_worker
from waybill.db.database import Connection
from waybill_engine import ClaimedJob
from waybill_engine.announcements import JOBS, LANES, parse_jobs, parse_lane
from waybill_engine.claim import claim
from waybill_engine.fair_share import FairShare
from waybill_engine.lease import WorkerInfo

T = TypeVar("T")

_series = itertools.count(1)

# These jobs are older than all jobs that are enqueued in the ordinary way, and older than those of the next `fill`.
_FILL = """
INSERT INTO jobs (id, tenant, owner, kind, queue, priority, cost, state, run_at, payload, time_limit, max_attempts,
                  created_at)
SELECT (lpad(to_hex($1::int), 8, '0') || '-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
       name, name, $4, $5, $6, COALESCE(($7::bigint[])[1 + n % COALESCE(cardinality($7), 1)], 1), $8,
       CASE WHEN $8 = 'scheduled' THEN now() + interval '1 day' ELSE now() END, $9::jsonb, 60, 3,
       'epoch'::timestamptz + $1 * interval '1 second'
  FROM generate_series(1, $2::int) AS n,
       LATERAL (SELECT $3::text || CASE WHEN $10::int > 1 THEN (n % $10)::text ELSE '' END AS name) AS tenant
"""


async def fill(
    connection: Connection,
    count: int,
    *,
    tenant: str = "acme",
    tenants: int = 1,
    kind: str = "work",
    queue: str = "default",
    priority: int = 0,
    costs: Sequence[int] | None = None,
    state: str = "queued",
    payload: str = "{}",
) -> None:
    """Insert many old jobs in one statement, without a notification. Several tenants are `tenant0`, `tenant1`, ..."""
    await connection.execute(
        _FILL, next(_series), count, tenant, kind, queue, priority, costs, state, payload, tenants, timeout=300
    )


class Claimant:
    def __init__(
        self, connection: Connection, worker: WorkerInfo, fair_share: FairShare, *, isolated: bool = False
    ) -> None:
        self.connection = connection
        self.worker = worker
        self.fair_share = fair_share
        self.isolated = isolated
        self.told_to_look = False
        self._told = asyncio.Event()

    @classmethod
    async def start(
        cls,
        connection: Connection,
        *,
        seed: int = 0,
        queues: Sequence[str] = ("default",),
        kinds: Sequence[str] = ("work", "other"),
        dependencies: Mapping[str, Sequence[str]] | None = None,
    ) -> Claimant:
        """Register a worker and let it find its lanes once."""
        worker = await start_worker(connection, queues=queues, kinds=kinds)
        claimant = cls(connection, worker, FairShare(dependencies, random.Random(seed)))
        await claimant.look()
        return claimant

    def for_suspects(self) -> Claimant:
        """The same worker, which claims suspects of a crash."""
        return Claimant(self.connection, self.worker, FairShare(rng=random.Random(0)), isolated=True)

    @property
    def id(self) -> uuid.UUID:
        return self.worker.id

    async def look(self) -> None:
        self.told_to_look = False
        await refresh(self.connection, self.fair_share, self.worker.queues, self.worker.kinds, isolated=self.isolated)

    def heard(self, channel: str, payload: str) -> None:
        """Handle a notification of jobs."""
        self._told.set()
        if channel == LANES:
            found = parse_lane(payload)
            self.fair_share.announce(found.lane, found.first)
        elif parse_jobs(payload) in self.worker.queues:
            self.told_to_look = True

    async def listen(self, listening: Connection) -> Callable[[], Awaitable[None]]:
        """Listen on this connection until the returned function is called."""

        def hear(_connection: object, _pid: int, channel: str, payload: object) -> None:
            self.heard(channel, str(payload))

        async def stop() -> None:
            for channel in (JOBS, LANES):
                await listening.remove_listener(channel, hear)

        for channel in (JOBS, LANES):
            await listening.add_listener(channel, hear)
        return stop

    async def hears_of(self, happening: Awaitable[T]) -> T:
        """Wait for `happening` and for the database's notification about it."""
        self._told.clear()
        answer = await happening
        async with asyncio.timeout(10):
            await self._told.wait()
        return answer

    async def claim(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> list[ClaimedJob]:
        """Claim once."""
        return await claim(self.connection, self.id, self.fair_share, limit, isolated=self.isolated, clock=clock)

    async def take(self, limit: int) -> list[ClaimedJob]:
        """Claim until there are `limit` jobs, or until no lane is open."""
        taken: list[ClaimedJob] = []
        claims = 0
        while len(taken) < limit and self.fair_share.any_open(time.monotonic()):
            taken += await self.claim(limit - len(taken))
            claims += 1
            assert claims < 10_000, "claims for ever, and gets nothing"
        return taken


_TOUCHED = """
SELECT (SELECT COALESCE(sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read), 0)
          FROM pg_statio_user_tables)::bigint
"""


async def pages_touched(connection: Connection, work: Callable[[], Awaitable[T]]) -> tuple[int, T]:
    """How many pages of all tables and indexes the work touches, and its result. No other work may run meanwhile."""

    async def so_far() -> int:
        # A connection reports its counts the next time it is idle.
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        return int(await connection.fetchval(_TOUCHED))

    before = await so_far()
    answer = await work()
    return await so_far() - before, answer
