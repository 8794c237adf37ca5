"""Workers as far as claiming goes, without their processes: each with shares that live as long as it does."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from support.engine import refresh, start_worker
from waybill.db.database import Connection
from waybill_engine import Lease
from waybill_engine.claim import claim
from waybill_engine.fair_share import Shares
from waybill_engine.lanes import announced
from waybill_engine.lease import WorkerInfo

T = TypeVar("T")

_series = itertools.count(1)

# Ids count up from long ago: these jobs are older than whatever is enqueued in the ordinary way, in any database.
_FILL = """
INSERT INTO jobs (id, tenant, owner, kind, queue, priority, cost, state, run_at, payload, time_limit, max_attempts)
SELECT (lpad(to_hex($1::int), 8, '0') || '-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
       name, name, $4, $5, $6, COALESCE(($7::bigint[])[1 + n % COALESCE(cardinality($7), 1)], 1), $8,
       CASE WHEN $8 = 'scheduled' THEN now() + interval '1 day' ELSE now() END, $9::jsonb, 60, 3
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
    """Many old jobs in one statement, unannounced; of several tenants called `tenant0`, `tenant1`, ..."""
    await connection.execute(
        _FILL, next(_series), count, tenant, kind, queue, priority, costs, state, payload, tenants, timeout=300
    )


class Claimant:
    def __init__(self, connection: Connection, worker: WorkerInfo, shares: Shares, *, isolated: bool = False) -> None:
        self.connection = connection
        self.worker = worker
        self.shares = shares
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
        dependencies: dict[str, str | None] | None = None,
    ) -> Claimant:
        """A worker that has registered and looked once."""
        worker = await start_worker(connection, queues=queues, kinds=kinds)
        claimant = cls(connection, worker, Shares(dependencies, random.Random(seed)))
        await claimant.look()
        return claimant

    def for_suspects(self) -> Claimant:
        """The same worker, taking suspects of a crash."""
        return Claimant(self.connection, self.worker, Shares(rng=random.Random(0)), isolated=True)

    @property
    def id(self) -> uuid.UUID:
        return self.worker.id

    async def look(self) -> None:
        self.told_to_look = False
        await refresh(self.connection, self.shares, self.worker.queues, self.worker.kinds, isolated=self.isolated)

    def heard(self, payload: str) -> None:
        """A notification on `waybill_jobs`."""
        self._told.set()
        if (found := announced(payload)) is None:
            self.told_to_look = True
        else:
            self.shares.announce(*found)

    async def listen(self, listening: Connection) -> Callable[[], Awaitable[None]]:
        """Hear what is said on this connection, until the answer is called."""

        def hear(_connection: object, _pid: int, _channel: str, payload: object) -> None:
            self.heard(str(payload))

        await listening.add_listener("waybill_jobs", hear)
        return lambda: listening.remove_listener("waybill_jobs", hear)

    async def hears_of(self, happening: Awaitable[T]) -> T:
        """Wait for something to happen, and for what the database says about it."""
        self._told.clear()
        answer = await happening
        async with asyncio.timeout(10):
            await self._told.wait()
        return answer

    async def claim(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> list[Lease]:
        """One claim."""
        return await claim(self.connection, self.id, self.shares, limit, isolated=self.isolated, clock=clock)

    async def take(self, limit: int) -> list[Lease]:
        """Claim until it is enough, or until there is nothing to claim from."""
        taken: list[Lease] = []
        claims = 0
        while len(taken) < limit and self.shares.any_open(time.monotonic()):
            taken += await self.claim(limit - len(taken))
            claims += 1
            assert claims < 10_000, "claims for ever, and gets nothing"
        return taken


_TOUCHED = """
SELECT (SELECT COALESCE(sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read), 0)
          FROM pg_statio_user_tables)::bigint
"""


async def pages_touched(connection: Connection, work: Callable[[], Awaitable[T]]) -> tuple[int, T]:
    """How many pages of all tables and indexes the work on this connection touches; nobody else may be at work."""

    async def so_far() -> int:
        # What a connection has counted is reported when it is idle next.
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        return int(await connection.fetchval(_TOUCHED))

    before = await so_far()
    answer = await work()
    return await so_far() - before, answer
