"""Step 2: a worker takes jobs. One statement, no transaction stays open while they run.

`shares` says from which lanes, and how many of each; the statement takes them, oldest first. What this worker cannot
run, and what is held back, is never even looked at. `SKIP LOCKED` lets many workers claim at once without waiting for
each other; only where a cap or a breaker limits what may run do they take turns, on that one's row.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from waybill_engine.breaker import BreakerPolicy, gate
from waybill_engine.caps import NO_LIMIT, look_under_caps, room_under_caps
from waybill_engine.fair_share import Gate, Portion, Shares
from waybill_engine.lanes import Cap

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Three things keep this to one plan whatever the statistics say: the sub-selects are MATERIALIZED, the picked ids
# come back as an array (a primary key look-up), and the partial indexes match only their own statement.
#
# The worker's own row is locked in share mode: a rescue, which takes it for update, then either sees these claims or
# happens before them. A worker whose lease ran out claims nothing until it has renewed it.
#
# What the worker knows of lanes and rules may be a moment old. So what holds a lane back is asked again here: a paused
# queue, a cap or a breaker other than those whose rows this transaction has locked.
_CLAIM = """
WITH me AS MATERIALIZED (
    SELECT id FROM workers WHERE id = $1 AND state = 'active' AND lease_expires_at > now() FOR SHARE
), lanes AS MATERIALIZED (
    SELECT lane.*
      FROM me, unnest($2::text[], $3::text[], $4::smallint[], $5::text[], $6::uuid[], $7::int[], $8::text[])
               AS lane (queue, kind, priority, tenant, start, quota, dependency)
     WHERE NOT EXISTS (SELECT FROM queues WHERE name = lane.queue AND paused_at IS NOT NULL)
       AND NOT EXISTS (SELECT FROM breakers
                        WHERE name = lane.dependency AND state <> 'closed' AND name <> ALL ($10::text[]))
       AND NOT EXISTS (SELECT FROM caps
                        WHERE COALESCE(caps.tenant = lane.tenant, true) AND COALESCE(caps.kind = lane.kind, true)
                          AND caps.id <> ALL ($9::int[]))
), picked AS MATERIALIZED (
    SELECT ready.id
      FROM lanes, LATERAL (
               SELECT id FROM jobs
                WHERE queue = lanes.queue AND kind = lanes.kind AND isolate = $11 AND priority = lanes.priority
                  AND tenant = lanes.tenant AND id >= lanes.start AND state = 'queued'
                ORDER BY id
                LIMIT lanes.quota
                  FOR UPDATE SKIP LOCKED
           ) AS ready
)
UPDATE jobs
   SET state = 'running', lease_owner = $1, lease_token = lease_token + 1, started_at = now(), updated_at = now(),
       progress = NULL, progress_message = NULL
 WHERE id = ANY (ARRAY(SELECT id FROM picked))
RETURNING id, lease_token, tenant, owner, kind, queue, priority, cost, attempts, max_attempts, time_limit,
          traceparent, created_at, isolate, error_code, payload
"""

# What is due becomes claimable, and the answer says when to look again. Claims never see what is not due. Parents that
# wait for their children are due at infinity, and not by the clock.
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
    RETURNING id, queue, kind, priority, tenant
), lanes AS (
    SELECT queue, kind, priority, tenant, min(id::text) AS first, count(*) OVER () > 16 AS many
      FROM promoted GROUP BY queue, kind, priority, tenant
), told AS (
    SELECT count(pg_notify('waybill_jobs', CASE
               WHEN many THEN queue ELSE json_build_array(queue, kind, priority, tenant, first)::text END))
      FROM lanes
)
SELECT (SELECT count(*) FROM promoted) AS promoted,
       (SELECT extract(epoch FROM run_at - now())::float8 FROM jobs
         WHERE state = 'scheduled' AND run_at > now() AND run_at < 'infinity' ORDER BY run_at LIMIT 1) AS next_in
  FROM told
"""


_DEFAULTS = BreakerPolicy()


@dataclass(slots=True, eq=False)
class Lease:
    """A claimed job, as its worker sees it. (`id`, `token`) is the fence of everything the worker writes."""

    # In the order in which the claim returns them.
    id: uuid.UUID
    token: int
    tenant: str
    owner: str
    kind: str
    queue: str
    priority: int
    cost: int
    attempts: int
    max_attempts: int
    time_limit: float
    traceparent: str | None
    created_at: datetime
    isolated: bool
    last_error: str | None
    """The code its last run ended with, if it ended badly."""
    payload: dict[str, Any]
    probe: datetime | None = None
    """When the half-open period of its dependency's breaker began, if this run finds out for the others."""


@dataclass(frozen=True, slots=True)
class Promoted:
    count: int
    next_in: float | None
    """Seconds until the next scheduled job is due, if there is one."""


async def claim(
    connection: Connection,
    worker_id: uuid.UUID,
    shares: Shares,
    limit: int,
    *,
    policy: BreakerPolicy = _DEFAULTS,
    isolated: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> list[Lease]:
    """Take up to `limit` jobs of the highest priority there is, fairly; `isolated` takes suspects of a crash.

    Fewer may come than there are: the lanes that ran short are forgotten, and the next call tries the others.
    """
    portions = shares.plan(limit, clock())
    if not portions:
        return []
    if not shares.gates(portions):
        leases = await _take(connection, worker_id, shares, portions, {}, isolated)
    else:
        portions, leases = await _claim_gated(connection, worker_id, shares, limit, policy, isolated, clock)
    shares.served(portions, leases)
    return leases


async def _claim_gated(
    connection: Connection,
    worker_id: uuid.UUID,
    shares: Shares,
    limit: int,
    policy: BreakerPolicy,
    isolated: bool,
    clock: Callable[[], float],
) -> tuple[list[Portion], list[Lease]]:
    """Claim where caps or breakers limit what may run: ask how much room there is, and take no more than that."""
    # Asked without locks first, about all of them: the full ones, however many, must not hide one that has room.
    in_question = [gate for gate in shares.gates_in_question(clock()) if isinstance(gate, Cap)]
    for cap, room in (await look_under_caps(connection, in_question)).items():
        if room <= 0:
            shares.close(cap, clock())
    portions = shares.plan(limit, clock())
    if not portions:
        return [], []
    gates = shares.gates(portions)
    async with connection.transaction():
        rooms, probing = await _rooms(connection, shares, gates, policy, clock)
        portions = shares.plan(limit, clock(), rooms)
        leases = await _take(connection, worker_id, shares, portions, rooms, isolated) if portions else []
    for lease in leases if probing else ():
        lease.probe = probing.get(shares.dependency(lease.kind))
    return portions, leases


async def _rooms(
    connection: Connection, shares: Shares, gates: set[Gate], policy: BreakerPolicy, clock: Callable[[], float]
) -> tuple[dict[Gate, int], dict[str | None, datetime | None]]:
    """How many more each gate lets through until this transaction ends, and since when its dependency is probed."""
    rooms: dict[Gate, int] = dict.fromkeys(gates, NO_LIMIT)
    probing: dict[str | None, datetime | None] = {}
    caps = [one for one in gates if isinstance(one, Cap)]
    for cap, room in (await room_under_caps(connection, caps)).items():
        rooms[cap] = 0 if room is None else room
        if room is None:
            shares.busy(cap, clock())
        elif room <= 0:
            shares.close(cap, clock())
    names = [one for one in gates if isinstance(one, str)]
    for name, found in (await gate(connection, names, policy)).items() if names else ():
        rooms[name] = found.room
        probing[name] = found.since
        if found.room <= 0:
            shares.close(name, clock(), found.look_in)
    return rooms, probing


async def _take(
    connection: Connection,
    worker_id: uuid.UUID,
    shares: Shares,
    portions: Sequence[Portion],
    locked: Mapping[Gate, int],
    isolated: bool,
) -> list[Lease]:
    rows = await connection.fetch(
        _CLAIM,
        worker_id,
        [portion.lane.queue for portion in portions],
        [portion.lane.kind for portion in portions],
        [portion.lane.priority for portion in portions],
        [portion.lane.tenant for portion in portions],
        [portion.start for portion in portions],
        [portion.quota for portion in portions],
        [shares.dependency(portion.lane.kind) for portion in portions],
        [one.id for one in locked if isinstance(one, Cap)],
        [one for one in locked if isinstance(one, str) and locked[one] < NO_LIMIT],
        isolated,
    )
    leases = [Lease(*row) for row in rows]
    for lease in leases:
        text: Any = lease.payload  # as it comes from the driver
        lease.payload = json.loads(text) if text != "{}" else {}
    # An UPDATE answers in the order it found the rows; the oldest run first.
    leases.sort(key=attrgetter("id"))
    return leases


async def promote_due(connection: Connection, limit: int = 1000) -> Promoted:
    """Move scheduled jobs whose time has come to where claims find them."""
    row = await connection.fetchrow(_PROMOTE, limit)
    assert row is not None, "an aggregate always answers"  # noqa: S101
    return Promoted(row["promoted"], row["next_in"])
