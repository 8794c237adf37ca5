"""Step 2: a worker claims jobs, in one statement. No transaction stays open while they run.

`fair_share` plans which lanes to take from, and how many jobs of each; the statement takes them, oldest first. Jobs
that this worker cannot run, or that may not run now, are never even read. `SKIP LOCKED` lets many workers claim at once
without waiting for each other. They take turns only where a cap, a rate or a breaker limits what may run, on that one's
row.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from waybill_engine.breaker import BreakerPolicy, admit
from waybill_engine.caps import NO_LIMIT, find_caps, look_under_caps, room_under_caps
from waybill_engine.fair_share import FairShare, Portion, portions_without
from waybill_engine.gates import Gate
from waybill_engine.lanes import Position
from waybill_engine.rates import Opening, find_rates, lock_rates, look_at_rates, pay
from waybill_engine.rules import BREAKER_LIMITS, WORKER_MAY_CLAIM, Cap, Rate, caps_on, queue_is_paused, rates_on

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Three things keep this to one plan whatever the statistics say: the sub-selects are MATERIALIZED, the picked ids
# come back as an array (a primary key look-up), and the partial indexes match only their own statement.
#
# The worker's own row is locked in share mode: a rescue, which takes it for update, then either sees these claims or
# happens before them. A worker whose lease ran out claims nothing until it has renewed it.
#
# What the worker knows about lanes and rules may be a moment old. So the statement checks the rules again: no paused
# queue, and no cap, rate or breaker other than those whose rows this transaction has locked.
_CLAIM = f"""
WITH me AS MATERIALIZED (
    SELECT id FROM workers WHERE id = $1 AND {WORKER_MAY_CLAIM} FOR SHARE
), limited AS MATERIALIZED (
    SELECT COALESCE(array_agg(name), '{{}}') AS names FROM breakers
     WHERE {BREAKER_LIMITS} AND name <> ALL ($11::text[])
), lanes AS MATERIALIZED (
    SELECT lane.*
      FROM me, limited, unnest($2::text[], $3::text[], $4::smallint[], $5::text[], $6::timestamptz[], $7::uuid[],
                               $8::int[], $9::text[])
               AS lane (queue, kind, priority, tenant, since, start, quota, dependencies)
     WHERE NOT {queue_is_paused("lane.queue")}
       AND NOT (limited.names && string_to_array(lane.dependencies, ','))
       AND NOT EXISTS (SELECT FROM {caps_on("lane")} AS limiting WHERE limiting.id <> ALL ($10::int[]))
       AND NOT EXISTS (SELECT FROM {rates_on("lane")} AS limiting WHERE limiting.id <> ALL ($13::int[]))
), picked AS MATERIALIZED (
    SELECT ready.id
      FROM lanes, LATERAL (
               SELECT id FROM jobs
                WHERE queue = lanes.queue AND kind = lanes.kind AND isolate = $12 AND priority = lanes.priority
                  AND tenant = lanes.tenant AND (created_at, id) >= (lanes.since, lanes.start) AND state = 'queued'
                ORDER BY created_at, id
                LIMIT lanes.quota
                  FOR UPDATE SKIP LOCKED
           ) AS ready
)
UPDATE jobs
   SET state = 'running', lease_owner = $1, lease_token = lease_token + 1, started_at = now(), updated_at = now(),
       progress = NULL, progress_message = NULL
 WHERE id = ANY (ARRAY(SELECT id FROM picked))
RETURNING id, lease_token, tenant, owner, kind, queue, priority, cost, attempts, max_attempts, time_limit,
          traceparent, created_at, isolate, error_code, outages, payload, lease_owner
"""  # noqa: S608 - made of constants

_DEFAULTS = BreakerPolicy()

_ASK_AGAIN = 60.0
"""Seconds after which to ask about a rate again that seems closed for longer."""


@dataclass(slots=True, eq=False)
class ClaimedJob:
    """A claimed job, as its worker sees it. (`id`, `token`, `worker_id`) is the fence of everything its run writes."""

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
    """The error code of its last run, if that failed."""
    outages: int
    """How many of its runs ended in an outage of the database."""
    payload_text: str
    """The payload as JSON. It stays text until a run needs it: decoded, it takes several times the memory."""
    worker_id: uuid.UUID
    """Who claimed it. The process may go on under another id later; this run does not."""
    probes: Mapping[str, datetime] | None = None
    """The dependencies that this run probes, and when the half-open period of each one's breaker began. None rather
    than empty, because most jobs probe nothing and a claim makes thousands of these."""

    @property
    def payload(self) -> dict[str, Any]:
        """What the job is about, decoded anew each time."""
        return json.loads(self.payload_text) if self.payload_text != "{}" else {}

    @property
    def position(self) -> Position:
        """Its place in its lane."""
        return Position(self.created_at, self.id)


async def claim(
    connection: Connection,
    worker_id: uuid.UUID,
    fair_share: FairShare,
    limit: int,
    *,
    policy: BreakerPolicy = _DEFAULTS,
    isolated: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> list[ClaimedJob]:
    """Take up to `limit` jobs of the highest priority there is, fairly; `isolated` takes suspects of a crash.

    A call may take fewer jobs than there are: it forgets the lanes that ran short, and the next call tries the others.
    """
    portions = fair_share.plan(limit, clock())
    if not portions:
        return []
    if not fair_share.gates_of(portions):
        claimed = await _take(connection, worker_id, fair_share, portions, {}, isolated)
    else:
        portions, claimed = await _claim_gated(connection, worker_id, fair_share, limit, policy, isolated, clock)
    if fair_share.knows_some_limits and (empty := portions_without(portions, claimed)):
        # Perhaps another worker was faster, or a cap or a rate that this worker does not know of is in the way.
        lanes = [portion.lane for portion in empty]
        fair_share.learn(await find_caps(connection, lanes), await find_rates(connection, lanes))
    fair_share.served(portions, claimed)
    return claimed


async def _claim_gated(
    connection: Connection,
    worker_id: uuid.UUID,
    fair_share: FairShare,
    limit: int,
    policy: BreakerPolicy,
    isolated: bool,
    clock: Callable[[], float],
) -> tuple[list[Portion], list[ClaimedJob]]:
    """Claim where caps, rates or breakers limit what may run: ask how much room there is, and take no more."""
    portions, claimed = await _claim_within(connection, worker_id, fair_share, limit, policy, isolated, clock)
    if portions:
        return portions, claimed
    # Everything that the plan wanted is behind closed gates. Ask about all others at once, without locking them: full
    # caps, however many, must not hide one that has room.
    in_question = fair_share.gates_in_question(clock())
    caps = [gate for gate in in_question if isinstance(gate, Cap)]
    for cap, room in (await look_under_caps(connection, caps)).items():
        if room <= 0:
            fair_share.gates.close(cap, clock())
    rates = [gate for gate in in_question if isinstance(gate, Rate)]
    _close(fair_share, await look_at_rates(connection, rates), clock)
    return await _claim_within(connection, worker_id, fair_share, limit, policy, isolated, clock)


async def _claim_within(
    connection: Connection,
    worker_id: uuid.UUID,
    fair_share: FairShare,
    limit: int,
    policy: BreakerPolicy,
    isolated: bool,
    clock: Callable[[], float],
) -> tuple[list[Portion], list[ClaimedJob]]:
    """Lock the gates that are in the plan's way, and claim as much as they let through."""
    gates = fair_share.gates_of(fair_share.plan(limit, clock()))
    async with connection.transaction():
        rooms, probing = await _rooms(connection, fair_share, gates, policy, clock)
        portions = fair_share.plan(limit, clock(), rooms)
        claimed = await _take(connection, worker_id, fair_share, portions, rooms, isolated) if portions else []
        starts = Counter(rate for job in claimed for rate in fair_share.gates.rates(job.tenant, job.kind))
        openings = await pay(connection, starts)
    _close(fair_share, openings, clock)  # only after the commit, which may fail
    for job in claimed if probing else ():
        probes = {name: probing[name] for name in fair_share.gates.dependencies(job.kind) if name in probing}
        job.probes = probes or None
    return portions, claimed


async def _rooms(
    connection: Connection, fair_share: FairShare, gates: set[Gate], policy: BreakerPolicy, clock: Callable[[], float]
) -> tuple[dict[Gate, int], dict[str, datetime]]:
    """How many jobs each gate lets through until this transaction ends, and since when its dependency is probed."""
    rooms: dict[Gate, int] = dict.fromkeys(gates, NO_LIMIT)
    probing: dict[str, datetime] = {}
    caps = [one for one in gates if isinstance(one, Cap)]
    for cap, room in (await room_under_caps(connection, caps)).items():
        rooms[cap] = 0 if room is None else room
        if room is None:
            fair_share.gates.back_off(cap, clock())
        elif room <= 0:
            fair_share.gates.close(cap, clock())
    openings, busy = await lock_rates(connection, [one for one in gates if isinstance(one, Rate)])
    rooms |= {rate: opening.room for rate, opening in openings.items()}
    _close(fair_share, openings, clock)
    for rate in busy:
        rooms[rate] = 0
        fair_share.gates.back_off(rate, clock())
    names = [one for one in gates if isinstance(one, str)]
    for name, admission in (await admit(connection, names, policy)).items() if names else ():
        rooms[name] = admission.room
        if admission.since is not None:
            probing[name] = admission.since
        if admission.room <= 0:
            fair_share.gates.close(name, clock(), admission.look_in)
    return rooms, probing


def _close(fair_share: FairShare, openings: Mapping[Rate, Opening], clock: Callable[[], float]) -> None:
    """Leave rates that are used up alone until they open again."""
    for rate, opening in openings.items():
        if opening.look_in is not None:
            fair_share.gates.close(rate, clock(), min(opening.look_in, _ASK_AGAIN))


async def _take(
    connection: Connection,
    worker_id: uuid.UUID,
    fair_share: FairShare,
    portions: Sequence[Portion],
    locked: Mapping[Gate, int],
    isolated: bool,
) -> list[ClaimedJob]:
    rows = await connection.fetch(
        _CLAIM,
        worker_id,
        [portion.lane.queue for portion in portions],
        [portion.lane.kind for portion in portions],
        [portion.lane.priority for portion in portions],
        [portion.lane.tenant for portion in portions],
        [portion.start.created_at for portion in portions],
        [portion.start.id for portion in portions],
        [portion.quota for portion in portions],
        [",".join(fair_share.gates.dependencies(portion.lane.kind)) for portion in portions],
        [one.id for one in locked if isinstance(one, Cap)],
        [one for one in locked if isinstance(one, str) and locked[one] < NO_LIMIT],
        isolated,
        [one.id for one in locked if isinstance(one, Rate)],
    )
    claimed = [ClaimedJob(*row) for row in rows]
    # An UPDATE answers in the order in which it found the rows; the oldest job runs first.
    claimed.sort(key=attrgetter("created_at", "id"))
    return claimed
