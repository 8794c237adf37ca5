"""Step 3: a worker keeps its jobs, by renewing its lease.

A worker has one lease, on its own row, and all its jobs run under it: renewing costs the same for one job as for a
thousand and never touches a job's row. After a renewal the worker asks which jobs it runs according to the database,
and so learns which jobs it lost, which it should stop, and which it has without knowing (a claim whose answer never
arrived).
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from waybill.errors import LeaseLost
from waybill.pg_text import storable
from waybill_engine.finish import released, settle

if TYPE_CHECKING:
    from waybill.db.database import Connection

_REGISTER = """
INSERT INTO workers (id, name, host, pid, pod_namespace, pod_name, pod_uid, version, queues, kinds, concurrency,
                     isolating, hears, node_started_at, state, started_at, last_seen_at, lease_expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14, $15, 'active', now(), now(),
        now() + $13 * interval '1 second')
    -- The answer to an earlier try was lost, or its parent has reserved a place for it. A worker that is gone stays so.
    ON CONFLICT (id) DO UPDATE
       SET name = excluded.name, pid = excluded.pid, last_seen_at = excluded.last_seen_at,
           lease_expires_at = excluded.lease_expires_at
     WHERE workers.state = 'active'
"""

# One at a time, so that two cannot both take the last place.
_LOCK_PLACES = "SELECT pg_advisory_xact_lock(hashtextextended('waybill_isolating', 0))"

_PLACES = """
SELECT count(*) FILTER (WHERE isolating) < 2 + count(*) FILTER (WHERE NOT isolating) / 20
  FROM workers
 WHERE state IN ('active', 'draining') AND lease_expires_at > now() AND kinds && $1::text[] AND queues && $2::text[]
"""

# A worker that was declared gone is never renewed: its jobs belong to others already. This statement does not read
# `jobs`, so that a lock on that table (an ALTER TABLE, for example) costs nobody a lease.
_RENEW = """
UPDATE workers
   SET last_seen_at = now(), lease_expires_at = now() + $2 * interval '1 second', missed_at = NULL
 WHERE id = $1 AND state IN ('active', 'draining')
RETURNING id
"""

_RUNNING = "SELECT id, lease_token, cancel_requested_at IS NOT NULL AS stop FROM jobs WHERE lease_owner = $1"

_FENCE = """
SELECT id FROM jobs
 WHERE id = $1 AND lease_token = $2 AND (lease_owner = $3) IS TRUE AND state = 'running'
   FOR UPDATE
"""

_DRAIN = "UPDATE workers SET state = 'draining' WHERE id = $1 AND state = 'active'"

_STOP = """
UPDATE workers SET state = 'stopped', stopped_at = now() WHERE id = $1 AND state IN ('active', 'draining') RETURNING id
"""

# Progress changes no indexed column, so that it is a HOT update. It waits for nobody's lock: whoever ends a child has
# that row and wants its parent's, so a statement that had the parent's and wanted the child's would wait for ever.
_PROGRESS = """
WITH free AS MATERIALIZED (
    SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) AND (state = 'running') IS TRUE FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs
   SET progress = news.progress, progress_message = news.message, updated_at = now()
  FROM unnest($1::uuid[], $2::int[], $3::uuid[], $4::real[], $5::text[]) AS news (id, token, worker, progress, message)
 WHERE jobs.id = ANY (ARRAY(SELECT id FROM free)) AND jobs.id = news.id AND jobs.lease_token = news.token
   AND (jobs.lease_owner = news.worker) IS TRUE AND jobs.state = 'running'
RETURNING jobs.id
"""


_LEFT_BEHIND = released("Its worker stopped.")


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    id: uuid.UUID
    name: str
    host: str
    pid: int
    version: str
    queues: Sequence[str]
    kinds: Sequence[str]
    concurrency: int
    isolating: bool = False
    hears: bool = False
    """It hears announcements, and takes its turn in reacting to them."""
    pod_namespace: str | None = None
    pod_name: str | None = None
    pod_uid: str | None = None
    node_started_at: datetime | None = None
    """When it registered, by the clock of its node; see `pods.verdicts`."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """Which jobs a worker runs according to the database."""

    tokens: Mapping[uuid.UUID, int]
    """The lease tokens of its jobs."""
    stop: frozenset[uuid.UUID]
    """The jobs that somebody asked to cancel."""


@dataclass(frozen=True, slots=True)
class Progress:
    id: uuid.UUID
    token: int
    worker_id: uuid.UUID
    fraction: float
    message: str | None


async def register(connection: Connection, worker: WorkerInfo, ttl: float) -> None:
    await connection.execute(
        _REGISTER,
        worker.id,
        worker.name,
        worker.host,
        worker.pid,
        worker.pod_namespace,
        worker.pod_name,
        worker.pod_uid,
        worker.version,
        worker.queues,
        worker.kinds,
        worker.concurrency,
        worker.isolating,
        ttl,
        worker.hears,
        worker.node_started_at,
    )


async def register_isolating(connection: Connection, worker: WorkerInfo, ttl: float) -> bool:
    """Reserve a place for a process that runs suspects of a crash. False if the fleet has enough of them.

    After a node died, every worker sees its suspects, and a process for each worker would be a second fleet.
    """
    async with connection.transaction():
        await connection.execute(_LOCK_PLACES)
        # A statement of its own, so that it sees what others reserved while we waited.
        if not await connection.fetchval(_PLACES, worker.kinds, worker.queues):
            return False
        await register(connection, worker, ttl)
    return True


async def renew(connection: Connection, worker_id: uuid.UUID, ttl: float) -> bool:
    """Renew the worker's lease, under which all its jobs run.

    False when the worker was declared gone: everything it runs belongs to others.
    """
    return await connection.fetchval(_RENEW, worker_id, ttl) is not None


async def holdings(connection: Connection, worker_id: uuid.UUID) -> Holdings:
    """Which jobs the worker runs. Never ask in the transaction that renews: a lock on `jobs` would hold that up."""
    running = await connection.fetch(_RUNNING, worker_id)
    return Holdings(
        tokens={row["id"]: row["lease_token"] for row in running},
        stop=frozenset(row["id"] for row in running if row["stop"]),
    )


async def fence(connection: Connection, worker_id: uuid.UUID, job_id: uuid.UUID, token: int) -> None:
    """Raise LeaseLost unless the job is still ours. Nobody can take it over until the transaction ends."""
    if await connection.fetchval(_FENCE, job_id, token, worker_id) is None:
        raise LeaseLost()


async def drain(connection: Connection, worker_id: uuid.UUID) -> None:
    """Record that this worker claims no more jobs."""
    await connection.execute(_DRAIN, worker_id)


async def stop(connection: Connection, worker_id: uuid.UUID) -> None:
    """Record that this worker has stopped, and release the jobs it still has, because nobody would rescue them."""
    async with connection.transaction():
        if await connection.fetchval(_STOP, worker_id) is None:
            return
        left = await connection.fetch(_RUNNING, worker_id)
        await settle(connection, worker_id, [(row["id"], row["lease_token"], _LEFT_BEHIND) for row in left])


async def write_progress(connection: Connection, news: Sequence[Progress]) -> set[uuid.UUID]:
    """Write progress, fenced, and return the jobs that were still this run's and that nobody else had locked."""
    rows = await connection.fetch(
        _PROGRESS,
        [one.id for one in news],
        [one.token for one in news],
        [one.worker_id for one in news],
        [_shown(one.fraction) for one in news],
        [storable(one.message) if one.message else None for one in news],
    )
    return {row["id"] for row in rows}


def _shown(fraction: float) -> float | None:
    return min(max(fraction, 0.0), 1.0) if math.isfinite(fraction) else None
