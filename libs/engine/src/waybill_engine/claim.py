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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import asyncpg

from waybill_engine.breaker import Admission, BreakerPolicy, admit
from waybill_engine.caps import find_caps, look_under_caps
from waybill_engine.fair_share import FairShare
from waybill_engine.gate_requests import ROOMS, GateRequest, close_caps, close_rates
from waybill_engine.lanes import Position
from waybill_engine.rates import RATE_IS_PAID_AHEAD, find_rates, look_at_rates
from waybill_engine.rules import BREAKER_LIMITS, WORKER_MAY_CLAIM, Cap, Rate, caps_on, queue_is_paused, rates_on
from waybill_engine.shares import Portion, portions_without, reached

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Three things keep claims to one plan whatever the statistics say: the sub-selects are MATERIALIZED, the picked ids
# come back as an array (a primary key look-up), and the partial indexes match only their own statement.
#
# The worker's own row is locked in share mode: a rescue, which takes it for update, then either sees these claims or
# happens before them. A worker whose lease ran out claims nothing until it has renewed it.
_ME = f"""me AS MATERIALIZED (
    SELECT id FROM workers WHERE id = $1 AND {WORKER_MAY_CLAIM} FOR SHARE
)"""  # noqa: S608 - made of constants


# What the worker knows about lanes and rules may be a moment old. So the statement checks the rules again: no paused
# queue, and no cap, rate or breaker other than those that were asked.
def _lanes(asked: str, quotas: str, *, caps: str, rates: str, breakers: str) -> str:
    return f"""limited AS MATERIALIZED (
    SELECT COALESCE(array_agg(name), '{{}}') AS names FROM breakers WHERE {BREAKER_LIMITS} AND name <> ALL ({breakers})
), lanes AS MATERIALIZED (
    SELECT lane.*
      FROM me, limited, {asked}
           unnest($3::text[], $4::text[], $5::smallint[], $6::text[], $7::text[], $8::timestamptz[], $9::uuid[],
                  $10::text[], {quotas})
               WITH ORDINALITY AS lane (queue, kind, priority, tenant, owner, since, start, dependencies, quota, number)
     WHERE lane.quota > 0
       AND NOT {queue_is_paused("lane.queue")}
       AND NOT (limited.names && string_to_array(lane.dependencies, ','))
       AND NOT EXISTS (SELECT FROM {caps_on("lane")} AS limiting WHERE limiting.id <> ALL ({caps}))
       AND NOT EXISTS (SELECT FROM {rates_on("lane")} AS limiting WHERE limiting.id <> ALL ({rates}))
     ORDER BY lane.number
)"""  # noqa: S608 - made of constants


# It goes from lane to lane until it has as many jobs as are wanted.
def _picked(wanted: str) -> str:
    return f"""picked AS MATERIALIZED (
    SELECT ready.id
      FROM lanes, LATERAL (
               SELECT id FROM jobs
                WHERE queue = lanes.queue AND kind = lanes.kind AND isolate = $2 AND priority = lanes.priority
                  AND tenant = lanes.tenant AND owner = lanes.owner
                  AND (created_at, id) >= (lanes.since, lanes.start) AND state = 'queued'
                ORDER BY created_at, id
                LIMIT lanes.quota
                  FOR UPDATE SKIP LOCKED
           ) AS ready
     LIMIT {wanted}
)"""  # noqa: S608 - made of constants


# In the order of the fields of `ClaimedJob`. The server tells times in seconds, because that costs it a tenth of what
# it costs a worker to read a time. What all jobs of a claim have in common is left out.
_TAKE = """UPDATE jobs
   SET state = 'running', lease_owner = $1, lease_token = lease_token + 1, started_at = now(), updated_at = now(),
       progress = NULL, progress_message = NULL, runnable_since = COALESCE(runnable_since, run_at)
 WHERE id = ANY (ARRAY(SELECT id FROM picked))
RETURNING id, lease_token, tenant, owner, kind, queue, priority, cost, attempts, max_attempts, time_limit,
          traceparent, tracestate, date_part('epoch', created_at) AS created,
          greatest(date_part('epoch', started_at - run_at), 0) AS waited,
          greatest(date_part('epoch', started_at - runnable_since), 0) AS waited_in_all, error_code, outages, payload"""

_NOTHING = "'{}'"

_CLAIM = f"""
WITH {_ME}, {_lanes("", "$11::int[]", caps=_NOTHING, rates=_NOTHING, breakers=_NOTHING)}, {_picked("$12")}
{_TAKE}
"""

# Rates are paid for what was claimed.
_PAID = f""", starts AS (
    SELECT limiting.id, sum(started.jobs) AS jobs
      FROM (SELECT tenant, kind, count(*) AS jobs FROM claimed GROUP BY tenant, kind) AS started,
           LATERAL {rates_on("started")} AS limiting
     GROUP BY limiting.id
), paid AS (
    UPDATE rates SET paid_up_to = greatest(paid_up_to, now()) + starts.jobs * spacing * interval '1 microsecond'
      FROM starts
     WHERE rates.id = starts.id AND most IS NOT NULL
    RETURNING rates.id, {RATE_IS_PAID_AHEAD} AS ahead, spacing, burst
)"""  # noqa: S608 - made of constants


# The last row has what the gates said. The statement's own snapshot is older than the locks; that does no harm, since
# only `waybill_rooms` counts what runs, and an UPDATE goes by the newest version of its row.
def _gated(paid: str, told: str) -> str:
    return f"""
WITH asked AS MATERIALIZED (
    SELECT quotas, rooms, waits FROM {ROOMS} AS answer
), {_ME}, {_lanes("asked,", "asked.quotas", caps="$11::int[]", rates="$14::int[]", breakers="$21::text[]")},
{_picked("ALL")}, claimed AS ({_TAKE}
){paid}
SELECT id, lease_token, tenant, owner, kind, queue, priority, cost, attempts, max_attempts, time_limit,
       traceparent, tracestate, created, waited, waited_in_all, error_code, outages, payload
  FROM claimed
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       jsonb_build_object('quotas', quotas, 'rooms', rooms, 'waits', waits, 'paid', {told})
  FROM asked
"""  # noqa: S608 - made of constants


_CLAIM_GATED = _gated("", "NULL")
"""For lanes behind caps and breakers. Leaving the payment out saves a third of what a claim of one job costs."""

_CLAIM_PACED = _gated(_PAID, "(SELECT json_agg(json_build_array(id, ahead, spacing, burst)) FROM paid)")
"""For lanes behind rates, too."""

_DEFAULTS = BreakerPolicy()

_SINCE = datetime(1970, 1, 1, tzinfo=UTC)

_SPARE_LANES = 64
"""How many lanes more than it wants jobs from a claim may go through. Looking into an empty one costs the server a few
microseconds, and another claim a hundred times that."""


@dataclass(slots=True, eq=False)
class ClaimedJob:
    """A claimed job, as its worker sees it. (`id`, `token`, `worker_id`) is the fence of everything its run writes."""

    worker_id: uuid.UUID
    """Who claimed it. The process may go on under another id later; this run does not."""
    isolated: bool
    # From here in the order in which the claim returns them.
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
    tracestate: str | None
    created: float
    """When it was enqueued, by the database's clock, in seconds since 1970: exact to the microsecond until 2106."""
    waited: float
    """For how many seconds it had been runnable when it was claimed, by the database's clock."""
    waited_in_all: float
    """The same since it was runnable for the first time: earlier runs and the waits between them are included."""
    last_error: str | None
    """The error code of its last run, if that failed."""
    outages: int
    """How many of its runs ended in an outage of the database."""
    payload_text: str
    """The payload as JSON. It stays text until a run needs it: decoded, it takes several times the memory."""
    probes: Mapping[str, datetime] | None = None
    """The dependencies that this run probes, and when the half-open period of each one's breaker began. None rather
    than empty, because most jobs probe nothing and a claim makes thousands of these."""
    claimed_at: float = 0.0
    """When its worker heard of the claim, by the loop's clock."""
    trace: str | None = None
    """The trace of its run, if traces are on and this one is recorded."""
    took: float = 0.0
    """Seconds that its run took, once that is over."""

    @property
    def payload(self) -> dict[str, Any]:
        """What the job is about, decoded anew each time."""
        return json.loads(self.payload_text) if self.payload_text != "{}" else {}

    @property
    def created_at(self) -> datetime:
        return _SINCE + timedelta(microseconds=round(self.created * 1e6))

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
    portions: Sequence[Portion] = fair_share.plan(limit, clock(), spare=_SPARE_LANES)
    if not portions:
        return []
    if not fair_share.gates_of(portions):
        quotas = [portion.quota for portion in portions]
        claimed = _in_order(
            worker_id,
            isolated,
            await connection.fetch(_CLAIM, worker_id, isolated, *_columns(fair_share, portions), quotas, limit),
        )
        portions = reached(portions, claimed, limit)
    else:
        portions, claimed = await _claim_gated(connection, worker_id, fair_share, limit, policy, isolated, clock)
    if lanes := fair_share.in_doubt(portions_without(portions, claimed)):
        # Perhaps another worker was faster, or a cap or a rate that this worker does not know of is in the way.
        fair_share.learn(lanes, await find_caps(connection, lanes), await find_rates(connection, lanes))
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
    """Claim where caps, rates or breakers limit what may run: take no more than they let through."""
    portions, claimed = await _claim_within(connection, worker_id, fair_share, limit, policy, isolated, clock)
    if portions:
        return portions, claimed
    # Everything that the plan wanted is behind closed gates. Ask about all others at once, without locking them: full
    # caps, however many, must not hide one that has room.
    in_question = fair_share.gates_in_question(clock())
    rooms = await look_under_caps(connection, [gate for gate in in_question if isinstance(gate, Cap)])
    close_caps((cap for cap, room in rooms.items() if room <= 0), fair_share.gates, clock())
    openings = await look_at_rates(connection, [gate for gate in in_question if isinstance(gate, Rate)])
    close_rates(openings, fair_share.gates, clock())
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
    """Claim as much of one plan as the gates in its way let through."""
    plan = fair_share.plan_for_gates(limit, clock())
    if not plan.turns:
        return [], []

    async def take(admissions: Mapping[str, Admission]) -> tuple[list[Portion], list[ClaimedJob]]:
        request = GateRequest(plan, admissions)
        *rows, answer = await connection.fetch(
            _CLAIM_PACED if request.pays else _CLAIM_GATED,
            worker_id,
            isolated,
            *_columns(fair_share, plan.lanes),
            *request.arguments(),
            list(admissions),
        )
        return request.learn(answer["payload"], fair_share.gates, clock()), _in_order(worker_id, isolated, rows)

    names = [gate for gate in fair_share.gates_of(plan.lanes) if isinstance(gate, str)]
    if names:
        # Breakers are limited only while a dependency is not well, so they may cost more round trips.
        async with connection.transaction():
            admissions = await admit(connection, names, policy)
            portions, claimed = await take(admissions)
        _take_note(admissions, fair_share, claimed, clock())
    else:
        portions, claimed = await take({})
    if not portions:
        fair_share.turned_away(plan)
    return portions, claimed


def _take_note(
    admissions: Mapping[str, Admission], fair_share: FairShare, claimed: Iterable[ClaimedJob], now: float
) -> None:
    """Leave dependencies alone that admit nothing, and tell jobs which dependencies they probe."""
    for name, admission in admissions.items():
        if admission.room <= 0:
            fair_share.gates.close(name, now, admission.look_in)
    probing = {name: admission.since for name, admission in admissions.items() if admission.since is not None}
    for job in claimed if probing else ():
        probes = {name: probing[name] for name in fair_share.gates.dependencies(job.kind) if name in probing}
        job.probes = probes or None


def _columns(fair_share: FairShare, portions: Sequence[Portion]) -> tuple[Sequence[Any], ...]:
    """The lanes, as arguments of both statements."""
    return (
        [portion.lane.queue for portion in portions],
        [portion.lane.kind for portion in portions],
        [portion.lane.priority for portion in portions],
        [portion.lane.tenant for portion in portions],
        [portion.lane.owner for portion in portions],
        [portion.start.created_at for portion in portions],
        [portion.start.id for portion in portions],
        [",".join(fair_share.gates.dependencies(portion.lane.kind)) for portion in portions],
    )


def _in_order(worker_id: uuid.UUID, isolated: bool, rows: Iterable[asyncpg.Record]) -> list[ClaimedJob]:
    claimed = [ClaimedJob(worker_id, isolated, *row) for row in rows]
    # An UPDATE answers in the order in which it found the rows; the oldest job runs first.
    claimed.sort(key=attrgetter("created", "id"))
    return claimed
