"""Step 2: a worker takes jobs. One statement, no transaction stays open while they run.

The scan goes lane by lane (queue × kind): what this worker cannot run, and what a paused queue holds, is never even
looked at. `SKIP LOCKED` lets many workers claim at once without waiting for each other.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncpg

    from waybill.db.database import Connection

# Three things keep this to one plan whatever the statistics say: the sub-selects are MATERIALIZED, the picked ids
# come back as an array (a primary key look-up), and the partial indexes match only their own statement.
#
# The worker's own row is locked in share mode: a rescue, which takes it for update, then either sees these claims or
# happens before them. A worker whose lease ran out claims nothing until it has renewed it.
_CLAIM = """
WITH me AS MATERIALIZED (
    SELECT id FROM workers WHERE id = $1 AND state = 'active' AND lease_expires_at > now() FOR SHARE
), lanes AS MATERIALIZED (
    SELECT queue, kind
      FROM me, unnest($2::text[]) AS queue, unnest($3::text[]) AS kind
     WHERE NOT EXISTS (SELECT FROM queues WHERE name = queue AND paused_at IS NOT NULL)
), picked AS MATERIALIZED (
    SELECT ready.id
      FROM lanes, LATERAL (
               SELECT id, priority
                 FROM jobs
                WHERE queue = lanes.queue AND kind = lanes.kind AND state = 'queued' AND NOT isolate
                ORDER BY priority DESC, id
                LIMIT $4
                  FOR UPDATE SKIP LOCKED
           ) AS ready
     ORDER BY ready.priority DESC, ready.id
     LIMIT $4
)
UPDATE jobs
   SET state = 'running', lease_owner = $1, lease_token = lease_token + 1, started_at = now(), updated_at = now(),
       progress = NULL, progress_message = NULL
 WHERE id = ANY (ARRAY(SELECT id FROM picked))
RETURNING id, lease_token, tenant, owner, kind, queue, payload, priority, attempts, max_attempts, crashes,
          time_limit, traceparent, created_at, isolate, error_code
"""

# The same for one suspect of a crash, which must run alone.
_CLAIM_ISOLATED = """
WITH me AS MATERIALIZED (
    SELECT id FROM workers WHERE id = $1 AND state = 'active' AND lease_expires_at > now() FOR SHARE
), lanes AS MATERIALIZED (
    SELECT queue, kind
      FROM me, unnest($2::text[]) AS queue, unnest($3::text[]) AS kind
     WHERE NOT EXISTS (SELECT FROM queues WHERE name = queue AND paused_at IS NOT NULL)
), picked AS MATERIALIZED (
    SELECT suspect.id
      FROM lanes, LATERAL (
               SELECT id
                 FROM jobs
                WHERE queue = lanes.queue AND kind = lanes.kind AND state = 'queued' AND isolate
                ORDER BY id
                LIMIT 1
                  FOR UPDATE SKIP LOCKED
           ) AS suspect
     ORDER BY suspect.id
     LIMIT 1
)
UPDATE jobs
   SET state = 'running', lease_owner = $1, lease_token = lease_token + 1, started_at = now(), updated_at = now(),
       progress = NULL, progress_message = NULL
 WHERE id = ANY (ARRAY(SELECT id FROM picked))
RETURNING id, lease_token, tenant, owner, kind, queue, payload, priority, attempts, max_attempts, crashes,
          time_limit, traceparent, created_at, isolate, error_code
"""

# What is due becomes claimable, and the answer says when to look again. Claims never see what is not due.
_PROMOTE = """
WITH due AS MATERIALIZED (
    SELECT id FROM jobs
     WHERE state = 'scheduled' AND run_at <= now()
     ORDER BY run_at
     LIMIT $1
       FOR UPDATE SKIP LOCKED
), promoted AS (
    UPDATE jobs SET state = 'queued', updated_at = now()
     WHERE id = ANY (ARRAY(SELECT id FROM due))
    RETURNING queue
), told AS (
    SELECT count(pg_notify('waybill_jobs', queue)) FROM (SELECT DISTINCT queue FROM promoted) AS queues
)
SELECT (SELECT count(*) FROM promoted) AS promoted,
       (SELECT extract(epoch FROM run_at - now())::float8 FROM jobs
         WHERE state = 'scheduled' AND run_at > now() ORDER BY run_at LIMIT 1) AS next_in
  FROM told
"""

# LIMIT keeps the inner select from becoming a join, which could be turned around.
_ISOLATED_WAITING = """
SELECT EXISTS (
    SELECT FROM unnest($1::text[]) AS q (queue), unnest($2::text[]) AS k (kind),
         LATERAL (
             SELECT id FROM jobs
              WHERE jobs.queue = q.queue AND jobs.kind = k.kind AND state = 'queued' AND isolate
              LIMIT 1
         ) AS suspect
     WHERE NOT EXISTS (SELECT FROM queues WHERE name = q.queue AND paused_at IS NOT NULL)
)
"""


@dataclass(frozen=True, slots=True)
class Lease:
    """A claimed job, as its worker sees it. (`id`, `token`) is the fence of everything the worker writes."""

    id: uuid.UUID
    token: int
    tenant: str
    owner: str
    kind: str
    queue: str
    payload: dict[str, Any]
    attempts: int
    max_attempts: int
    time_limit: float
    traceparent: str | None
    created_at: datetime
    isolated: bool
    last_error: str | None
    """The code its last run ended with, if it ended badly."""


@dataclass(frozen=True, slots=True)
class Promoted:
    count: int
    next_in: float | None
    """Seconds until the next scheduled job is due, if there is one."""


async def claim(
    connection: Connection, worker_id: uuid.UUID, queues: Sequence[str], kinds: Sequence[str], limit: int
) -> list[Lease]:
    """Take up to `limit` jobs, by priority, then oldest first."""
    rows = await connection.fetch(_CLAIM, worker_id, _each_once(queues), _each_once(kinds), limit)
    # An UPDATE answers in the order it found the rows; the caller runs them in the order they were picked.
    return [_lease(row) for row in sorted(rows, key=lambda row: (-row["priority"], row["id"]))]


async def claim_isolated(
    connection: Connection, worker_id: uuid.UUID, queues: Sequence[str], kinds: Sequence[str]
) -> list[Lease]:
    """Take one suspect of a crash. The caller runs nothing else meanwhile."""
    rows = await connection.fetch(_CLAIM_ISOLATED, worker_id, _each_once(queues), _each_once(kinds))
    return [_lease(row) for row in rows]


async def isolated_waiting(connection: Connection, queues: Sequence[str], kinds: Sequence[str]) -> bool:
    return bool(await connection.fetchval(_ISOLATED_WAITING, queues, kinds))


async def promote_due(connection: Connection, limit: int = 1000) -> Promoted:
    """Move scheduled jobs whose time has come to where claims find them."""
    row = await connection.fetchrow(_PROMOTE, limit)
    assert row is not None, "an aggregate always answers"  # noqa: S101
    return Promoted(row["promoted"], row["next_in"])


def _each_once(names: Sequence[str]) -> list[str]:
    """A lane that is scanned twice would count twice against the limit."""
    return list(dict.fromkeys(names))


def _lease(row: asyncpg.Record) -> Lease:
    return Lease(
        id=row["id"],
        token=row["lease_token"],
        tenant=row["tenant"],
        owner=row["owner"],
        kind=row["kind"],
        queue=row["queue"],
        payload=json.loads(row["payload"]),
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        time_limit=row["time_limit"],
        traceparent=row["traceparent"],
        created_at=row["created_at"],
        isolated=row["isolate"],
        last_error=row["error_code"],
    )
