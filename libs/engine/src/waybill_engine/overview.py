"""What an operator sees at a glance: queues, workers with their jobs, the slowest jobs, and dead letters by error.

Every statement goes through an index that has only the jobs it is about, and ends at a bound, so that the page costs
the same with ten jobs and with a hundred thousand. Depths come from `samples`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill.db.column_types import readable_time
from waybill_engine.rules import WORKER_MAY_CLAIM

if TYPE_CHECKING:
    from waybill.db.database import Connection

MOST_DEAD_LETTERS = 2_000
"""So many dead letters are grouped: the newest."""
MOST_RUNNING = 1_000
"""So many running jobs are listed."""
MOST_WORKERS = 200

# A queue is known when an operator paused it, a kind uses it by default, or a worker serves it.
_QUEUES = f"""
WITH served AS (
    SELECT DISTINCT queue, kind
      FROM workers, unnest(workers.queues) AS queue, unnest(workers.kinds) AS kind WHERE {WORKER_MAY_CLAIM}
), known AS (
    SELECT name AS queue FROM queues
     UNION
    SELECT queue FROM kinds WHERE queue IS NOT NULL
     UNION
    SELECT queue FROM served
)
SELECT known.queue, queues.paused_at, queues.paused_reason,
       ARRAY(SELECT name FROM kinds WHERE kinds.queue = known.queue ORDER BY name) AS kinds,
       ARRAY(SELECT kind FROM served WHERE served.queue = known.queue ORDER BY kind) AS served
  FROM known LEFT JOIN queues ON queues.name = known.queue
 ORDER BY known.queue
"""  # noqa: S608 - made of constants

_WORKERS = """
SELECT workers.id, workers.name, workers.host, workers.pid, workers.pod_name, workers.version, workers.queues,
       workers.kinds, workers.concurrency, workers.isolating, workers.state, workers.started_at, workers.last_seen_at,
       workers.lease_expires_at <= now() AS expired,
       (SELECT count(*) FROM jobs WHERE lease_owner = workers.id) AS running
  FROM workers
 WHERE workers.state IN ('active', 'draining')
 ORDER BY workers.lease_expires_at <= now() DESC, workers.name
 LIMIT $1
"""

# Found in the index, and sorted afterwards.
_RUNNING = """
WITH held AS MATERIALIZED (
    SELECT id FROM jobs WHERE lease_owner IS NOT NULL ORDER BY lease_owner, kind, tenant LIMIT $1
)
SELECT id, tenant, kind, started_at AS since, lease_owner FROM jobs
 WHERE id = ANY (ARRAY(SELECT id FROM held)) AND (lease_owner IS NOT NULL) IS TRUE
 ORDER BY started_at, id
"""

_WAITING = f"""
SELECT id, tenant, kind, {readable_time("run_at")} AS since FROM jobs
 WHERE id = ANY ($1::uuid[]) AND (state = 'queued') IS TRUE
 ORDER BY run_at, id
"""  # noqa: S608 - made of constants

_DEAD_LETTERS = """
WITH newest AS MATERIALIZED (
    SELECT id, kind, error_code, error_message, finished_at FROM jobs
     WHERE state = 'dead_letter' ORDER BY id DESC LIMIT $1
)
SELECT kind, error_code, count(*)::int AS jobs, max(finished_at) AS newest_at,
       (array_agg(id ORDER BY id DESC))[1] AS example, (array_agg(error_message ORDER BY id DESC))[1] AS message,
       (sum(count(*)) OVER ())::int AS examined
  FROM newest
 GROUP BY kind, error_code
 ORDER BY count(*) DESC, kind, error_code
"""


@dataclass(frozen=True, slots=True)
class KnownQueue:
    name: str
    paused_at: datetime | None
    paused_reason: str | None
    kinds: Sequence[str]
    """The kinds whose jobs go there unless their enqueuer says otherwise."""
    served: Sequence[str]
    """The kinds that some worker serves there now."""


@dataclass(frozen=True, slots=True)
class LiveWorker:
    id: uuid.UUID
    name: str
    host: str
    pid: int
    pod_name: str | None
    version: str
    queues: Sequence[str]
    kinds: Sequence[str]
    concurrency: int
    isolating: bool
    state: str
    started_at: datetime
    last_seen_at: datetime
    expired: bool
    """Its lease has ended, and nobody has taken its jobs back yet."""
    running: int


@dataclass(frozen=True, slots=True)
class SlowJob:
    id: uuid.UUID
    tenant: str
    kind: str
    since: datetime
    """Since when it has run, or waited."""
    worker_id: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """Dead letters of one kind with the same error."""

    kind: str
    error_code: str | None
    jobs: int
    newest_at: datetime | None
    example: uuid.UUID
    """The newest of them, and what it said."""
    message: str | None


@dataclass(frozen=True, slots=True)
class DeadLetterOverview:
    groups: Sequence[DeadLetterGroup]
    more: bool
    """There are more than were grouped."""


async def known_queues(connection: Connection) -> list[KnownQueue]:
    return [KnownQueue(*row) for row in await connection.fetch(_QUEUES)]


async def live_workers(connection: Connection) -> list[LiveWorker]:
    """Workers that are active or draining, those without a lease first."""
    return [LiveWorker(*row) for row in await connection.fetch(_WORKERS, MOST_WORKERS)]


async def running_jobs(connection: Connection) -> list[SlowJob]:
    """The jobs that run now, the longest first."""
    return [SlowJob(*row) for row in await connection.fetch(_RUNNING, MOST_RUNNING)]


async def still_waiting(connection: Connection, job_ids: Sequence[uuid.UUID]) -> list[SlowJob]:
    """Those of the jobs that are still queued. Give it `Sample.waiting_longest`."""
    return [SlowJob(*row) for row in await connection.fetch(_WAITING, job_ids)] if job_ids else []


async def dead_letters(connection: Connection) -> DeadLetterOverview:
    """The newest dead letters by kind and error, the most common first."""
    rows = await connection.fetch(_DEAD_LETTERS, MOST_DEAD_LETTERS)
    groups = [
        DeadLetterGroup(row["kind"], row["error_code"], row["jobs"], row["newest_at"], row["example"], row["message"])
        for row in rows
    ]
    return DeadLetterOverview(groups, more=bool(rows) and rows[0]["examined"] >= MOST_DEAD_LETTERS)
