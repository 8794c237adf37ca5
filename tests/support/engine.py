"""Helpers for the engine's tests: start a worker, make a job, look at what became of it."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import asyncpg

from waybill.db.database import Connection
from waybill.errors import Code
from waybill.failures import Failure
from waybill.ids import new_id
from waybill_engine import ClaimedJob, JobKind, NewJob, State, bulk
from waybill_engine.breaker import BreakerPolicy
from waybill_engine.claim import claim
from waybill_engine.enqueue import enqueue_many
from waybill_engine.fair_share import FairShare
from waybill_engine.job_filter import JobFilter
from waybill_engine.lanes import LaneScan
from waybill_engine.lease import WorkerInfo, register
from waybill_engine.retry import RetryPolicy

Connect = Callable[[], Awaitable[Connection]]
"""The type of the fixture `connect`, which opens one more connection to the test's database."""

WORK = JobKind("work", retry=RetryPolicy(retries=2, base=10.0, jitter=0.0), max_crashes=3)
"""A kind with three attempts, ten seconds apart, and three crashes."""
OTHER = JobKind("other", retry=RetryPolicy(retries=0))
TTL = 60.0
NO_SETTLE = -1.0
"""For `rescue`, in tests that are not about a server that has just started."""

FINAL = ("succeeded", "failed", "dead_letter", "cancelled")
ENDS_OF_RUNS = (
    "succeeded",
    "failed",
    "dead_lettered",
    "retry_scheduled",
    "postponed",
    "released",
    "snoozed",
    "cancelled",
    "crashed",
    "suspected",
)

_numbers = itertools.count(1)


@dataclass(frozen=True)
class StoredFile:
    """What storing a file returns, as far as publishing needs it."""

    key: str
    bytes: int = 3
    sha256: str = "ab" * 32


def stored(key: str) -> Any:
    return cast("Any", StoredFile(key))


async def start_worker(
    connection: Connection,
    *,
    queues: Sequence[str] = ("default",),
    kinds: Sequence[str] = ("work", "other"),
    ttl: float = TTL,
) -> WorkerInfo:
    worker = WorkerInfo(
        id=new_id(),
        name=f"worker-{next(_numbers)}",
        host="here",
        pid=1,
        version="test",
        queues=queues,
        kinds=kinds,
        concurrency=10,
    )
    await register(connection, worker, ttl)
    return worker


async def take_as(
    connection: Connection,
    worker_id: uuid.UUID,
    queues: Sequence[str],
    kinds: Sequence[str],
    limit: int,
    *,
    isolated: bool = False,
    dependencies: Mapping[str, Sequence[str]] | None = None,
    policy: BreakerPolicy = BreakerPolicy(),  # noqa: B008 - it cannot be changed
) -> list[ClaimedJob]:
    """Claim like a worker that has just started: find lanes, then claim until none is open or `limit` is reached."""
    fair_share = FairShare(dependencies, random.Random(0))  # so that ties are broken the same way each time
    await refresh(connection, fair_share, queues, kinds, isolated=isolated)
    taken: list[ClaimedJob] = []
    while len(taken) < limit and fair_share.any_open(time.monotonic()):
        taken += await claim(connection, worker_id, fair_share, limit - len(taken), isolated=isolated, policy=policy)
    return taken


async def refresh(
    connection: Connection,
    fair_share: FairShare,
    queues: Sequence[str],
    kinds: Sequence[str],
    *,
    isolated: bool = False,
) -> None:
    """Find lanes and rules, as a worker's lane finder does."""
    news = fair_share.announcements
    scan = LaneScan(queues, kinds, isolated=isolated)
    while True:
        lanes, rules = await scan.look(connection)
        fair_share.apply(rules)
        fair_share.found(lanes, news, complete=scan.complete)
        if scan.begins_anew:
            return


def an_hour_ahead(job_id: uuid.UUID) -> uuid.UUID:
    """The id that this one would be if the clock of the host that made it were an hour ahead."""
    return uuid.UUID(int=job_id.int + (3_600_000 << 80))


async def take(connection: Connection, worker: WorkerInfo, limit: int = 100) -> list[ClaimedJob]:
    return await take_as(connection, worker.id, worker.queues, worker.kinds, limit)


async def take_isolated(connection: Connection, worker: WorkerInfo) -> list[ClaimedJob]:
    return await take_as(connection, worker.id, worker.queues, worker.kinds, 1, isolated=True)


async def some_jobs(connection: Connection, count: int, kind: JobKind = WORK, **facts: Any) -> list[uuid.UUID]:
    jobs = [NewJob(kind, **{"tenant": "acme", **facts}) for _ in range(count)]
    return [one.id for one in await enqueue_many(connection, jobs, as_operator=True)]


async def one_job(connection: Connection, kind: JobKind = WORK, **facts: Any) -> uuid.UUID:
    return (await some_jobs(connection, 1, kind, **facts))[0]


async def running_job(connection: Connection, kind: JobKind = WORK, **facts: Any) -> tuple[WorkerInfo, ClaimedJob]:
    """A new job and a new worker that runs it."""
    job_id = await one_job(connection, kind, **facts)
    worker = await start_worker(connection)
    claimed_jobs = await take(connection, worker, 1)
    assert [claimed.id for claimed in claimed_jobs] == [job_id]
    return worker, claimed_jobs[0]


async def row(connection: Connection, job_id: uuid.UUID) -> asyncpg.Record:
    found = await connection.fetchrow("SELECT * FROM jobs WHERE id = $1", job_id)
    assert found is not None, f"job {job_id} is lost"
    return found


async def state(connection: Connection, job_id: uuid.UUID) -> State:
    return State((await row(connection, job_id))["state"])


async def states(connection: Connection, job_ids: Iterable[uuid.UUID]) -> list[State]:
    return [await state(connection, job_id) for job_id in job_ids]


async def events(connection: Connection, job_id: uuid.UUID) -> list[str]:
    rows = await connection.fetch("SELECT event FROM job_events WHERE job_id = $1 ORDER BY id", job_id)
    return [row["event"] for row in rows]


async def count(connection: Connection, where: str = "true") -> int:
    return int(await connection.fetchval(f"SELECT count(*) FROM jobs WHERE {where}"))


async def until_blocked(looking: Connection, other: Connection) -> None:
    """Wait until the other connection waits for a lock."""
    async with asyncio.timeout(10):
        while not await looking.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", other.get_server_pid()):
            await asyncio.sleep(0)


def failure(
    *, retryable: bool = True, charged: bool = True, retry_after: float | None = None, message: str = "no luck"
) -> Failure:
    return Failure(
        code=Code.GW_5XX if retryable else Code.PARSE_ERROR,
        message=message,
        status=500,
        retryable=retryable,
        charged=charged,
        retry_after=retry_after,
        detail=None,
    )


async def purge(
    connection: Connection,
    *,
    older_than: timedelta,
    states: Collection[State],
    kind: str | None = None,
    tenant: str | None = None,
    batch: int = 1000,
) -> int:
    """Delete ended jobs over one connection, and return how many there were."""
    wanted = JobFilter(states, kind, tenant, older_than=older_than)
    steps = bulk.delete(lambda: nullcontext(connection), wanted, batch=batch)
    return sum([len(step.done) async for step in steps])


async def find_contradictions(connection: Connection) -> list[str]:
    """List violations of the tables' invariants. The list is empty if everything is consistent."""
    checks = {
        "a job is running without a living worker": """
            SELECT jobs.id FROM jobs LEFT JOIN workers ON workers.id = lease_owner
             WHERE jobs.state = 'running' AND (workers.state IS NULL OR workers.state NOT IN ('active', 'draining'))""",
        "running and leased are not the same": """
            SELECT id FROM jobs WHERE (state = 'running') <> (lease_owner IS NOT NULL)""",
        "more attempts than allowed": "SELECT id FROM jobs WHERE attempts > max_attempts OR crashes > max_crashes",
        "ended without a time, or the reverse": """
            SELECT id FROM jobs
             WHERE (state IN ('succeeded', 'failed', 'dead_letter', 'cancelled')) <> (finished_at IS NOT NULL)""",
        "a run without exactly one end": f"""
            SELECT jobs.id
              FROM jobs, generate_series(1, lease_token - CASE WHEN state = 'running' THEN 1 ELSE 0 END) AS run
             WHERE 1 <> (SELECT count(*) FROM job_events
                          WHERE job_id = jobs.id AND job_events.lease_token = run
                            AND event = ANY ('{{{",".join(ENDS_OF_RUNS)}}}'))""",
        "a run that goes on has an end": """
            SELECT jobs.id FROM jobs JOIN job_events ON job_id = jobs.id AND job_events.lease_token = jobs.lease_token
             WHERE jobs.state = 'running'""",
        "an event of a run that never was": """
            SELECT jobs.id FROM jobs JOIN job_events ON job_id = jobs.id
             WHERE job_events.lease_token > jobs.lease_token""",
        "a job succeeded twice": """
            SELECT job_id FROM job_events WHERE event = 'succeeded' GROUP BY job_id HAVING count(*) > 1""",
        "a parent waits for another number of children than are active": """
            SELECT parent.id FROM jobs AS parent
             WHERE pending_children <> (SELECT count(*) FROM jobs AS child
                                         WHERE child.parent_id = parent.id AND child.awaited
                                           AND child.state IN ('scheduled', 'queued', 'running'))""",
        "a parent waits in another way than it should": """
            SELECT id FROM jobs
             WHERE (pending_children > 0 OR parked_for IS NOT NULL) <> (run_at = 'infinity')
                OR (pending_children > 0 AND (state <> 'scheduled' OR pending_children > children))""",
        "an active child of a waiting parent is not waited for": """
            SELECT child.id FROM jobs AS child JOIN jobs AS parent ON parent.id = child.parent_id
             WHERE parent.pending_children > 0 AND NOT child.awaited
               AND child.state IN ('scheduled', 'queued', 'running')""",
        "more jobs of a sequence hold a place than may": """
            SELECT min(id::text)::uuid FROM jobs
             WHERE sequence_key IS NOT NULL AND parked_for IS NULL AND state IN ('scheduled', 'queued', 'running')
             GROUP BY tenant, kind, sequence_key HAVING count(*) > max(sequence_at_once)""",
        "a job is parked although there is room": """
            SELECT first.id
              FROM (SELECT (array_agg(id ORDER BY sequence_position) FILTER (WHERE parked_for IS NOT NULL))[1] AS id,
                           count(*) FILTER (WHERE parked_for IS NULL) AS holding
                      FROM jobs
                     WHERE sequence_key IS NOT NULL AND state IN ('scheduled', 'queued', 'running')
                     GROUP BY tenant, kind, sequence_key) AS first
              JOIN jobs USING (id)
             WHERE holding < jobs.sequence_at_once""",
        "a job is parked in another way than it should": """
            SELECT id FROM jobs
             WHERE parked_for IS NOT NULL AND (state <> 'scheduled' OR sequence_key IS NULL)
                OR (sequence_key IS NULL) <> (sequence_position IS NULL)""",
        "two active jobs share a key": """
            SELECT min(id::text)::uuid FROM jobs
             WHERE unique_scope = 'active' AND state IN ('scheduled', 'queued', 'running')
             GROUP BY tenant, kind, unique_key HAVING count(*) > 1""",
        "two kept jobs share a key": """
            SELECT min(id::text)::uuid FROM jobs WHERE unique_scope IN ('window', 'forever')
             GROUP BY tenant, kind, unique_key HAVING count(*) > 1""",
    }
    return [
        f"{what}: {[str(found[0]) for found in rows]}"
        for what, query in checks.items()
        if (rows := await connection.fetch(query))
    ]
