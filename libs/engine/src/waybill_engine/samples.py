"""Samples: how many jobs wait and run, taken every few seconds by one process for all of them.

Metrics, the page `/ops` and alerts show depths and ages. If each replica counted for itself, a hundred of them would
cost a hundred counts. So whoever comes first takes a sample, and everybody reads the newest one. What is older than a
day is removed by whoever takes the next.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from waybill.db.column_types import readable_time
from waybill.db.session_settings import SET_LOCAL, names_and_values
from waybill_engine import enqueued_elsewhere
from waybill_engine.rates import RATE_OPENS_AT
from waybill_engine.rules import dependencies_of

if TYPE_CHECKING:
    from waybill.db.database import Connection

MOST_COUNTED = 100_000
"""Counting ends here: of each kind in a queue, and of all jobs in another state."""

MOST_TENANTS = 20
"""So many tenants are in a sample: those with the most jobs."""

MOST_JOBS = 10
"""So many waiting jobs are in a sample: the one that has waited longest of each lane."""

KEPT = timedelta(days=1)

# A single replica looks every `interval` seconds by its own clock, so a sample may be due a moment before it is that
# old. One from the future was taken before somebody put the clock back.
_IS_DUE = """
SELECT NOT EXISTS (
    SELECT FROM samples WHERE taken_at > now() - $1::float8 * 0.9 * interval '1 second' AND taken_at <= now()
)
"""

_ONE_AT_A_TIME = "SELECT pg_try_advisory_xact_lock(hashtextextended('waybill_sample', 0))"

# Hash joins, because there may be thousands of caps. Each way into `jobs` has its index all the same.
_LIMITS = {"statement_timeout": "10s", "enable_hashjoin": "on"}

# Queues and kinds in which jobs wait are read one by one from the index; then each pair is counted by itself, so that a
# long queue of one kind does not hide the others. Other states are counted for all kinds together.
#
# A cap with neither kind nor tenant does not exist, so an empty text stands for "any".
_TAKE = f"""
WITH RECURSIVE pairs AS (
    (SELECT queue, kind FROM jobs WHERE state = 'queued' ORDER BY queue, kind LIMIT 1)
     UNION ALL
    SELECT later.queue, later.kind
      FROM pairs, LATERAL (
               SELECT queue, kind FROM jobs
                WHERE state = 'queued' AND (jobs.queue, jobs.kind) > (pairs.queue, pairs.kind)
                ORDER BY queue, kind LIMIT 1
           ) AS later
), lanes AS MATERIALIZED (
    SELECT pairs.queue, pairs.kind, lane.isolate, lane.priority, lane.tenant, lane.owner, lane.jobs, lane.oldest,
           sum(lane.jobs) OVER (PARTITION BY pairs.queue, pairs.kind) AS examined
      FROM pairs, LATERAL (
               SELECT isolate, priority, tenant, owner, count(*) AS jobs, min(run_at) AS oldest
                 FROM (SELECT isolate, priority, tenant, owner, run_at FROM jobs
                        WHERE state = 'queued' AND jobs.queue = pairs.queue AND jobs.kind = pairs.kind
                        ORDER BY queue, kind, isolate, priority DESC, tenant, owner, created_at, id
                        LIMIT $1::int) AS few
                GROUP BY isolate, priority, tenant, owner
           ) AS lane
), counted AS MATERIALIZED (
    SELECT 'queued' AS state, kind, tenant, sum(jobs) AS jobs, min(oldest) AS oldest, max(examined) AS examined
      FROM lanes GROUP BY kind, tenant
     UNION ALL
    SELECT 'scheduled', kind, tenant, count(*), NULL, sum(count(*)) OVER ()
      FROM (SELECT kind, tenant FROM jobs WHERE state = 'scheduled' ORDER BY run_at LIMIT $1::int) AS few
     GROUP BY kind, tenant
     UNION ALL
    SELECT 'running', kind, tenant, count(*), NULL, sum(count(*)) OVER ()
      FROM (SELECT kind, tenant FROM jobs WHERE lease_owner IS NOT NULL
             ORDER BY lease_owner, kind, tenant LIMIT $1::int) AS few
     GROUP BY kind, tenant
     UNION ALL
    SELECT 'dead_letter', kind, tenant, count(*), NULL, sum(count(*)) OVER ()
      FROM (SELECT kind, tenant FROM jobs WHERE state = 'dead_letter' ORDER BY id LIMIT $1::int) AS few
     GROUP BY kind, tenant
), of_kinds AS (
    INSERT INTO kind_samples (taken_at, kind, queued, scheduled, running, dead_letter, oldest_runnable_at)
    SELECT now(), kind,
           COALESCE(sum(jobs) FILTER (WHERE state = 'queued'), 0),
           COALESCE(sum(jobs) FILTER (WHERE state = 'scheduled'), 0),
           COALESCE(sum(jobs) FILTER (WHERE state = 'running'), 0),
           COALESCE(sum(jobs) FILTER (WHERE state = 'dead_letter'), 0), min(oldest)
      FROM (SELECT kind, state, jobs, oldest FROM counted
             UNION ALL
            SELECT name, NULL, NULL, NULL FROM kinds) AS known
     GROUP BY kind
), of_tenants AS (
    SELECT tenant,
           COALESCE(sum(jobs) FILTER (WHERE state = 'queued'), 0) AS queued,
           COALESCE(sum(jobs) FILTER (WHERE state = 'scheduled'), 0) AS scheduled,
           COALESCE(sum(jobs) FILTER (WHERE state = 'running'), 0) AS running,
           COALESCE(sum(jobs) FILTER (WHERE state = 'dead_letter'), 0) AS dead_letter
      FROM counted GROUP BY tenant ORDER BY sum(jobs) DESC, tenant LIMIT $2::int
), waiting_longest AS (
    SELECT first.id, late.oldest
      FROM (SELECT queue, kind, isolate, priority, tenant, owner, oldest FROM lanes
             ORDER BY oldest LIMIT $3::int) AS late, LATERAL (
               SELECT id FROM jobs
                WHERE state = 'queued' AND jobs.queue = late.queue AND jobs.kind = late.kind
                  AND jobs.isolate = late.isolate AND jobs.priority = late.priority AND jobs.tenant = late.tenant
                  AND jobs.owner = late.owner AND run_at = late.oldest
                ORDER BY created_at, id
                LIMIT 1
           ) AS first
), running AS (
    SELECT COALESCE(kind, '') AS kind, COALESCE(tenant, '') AS tenant, sum(jobs) AS jobs
      FROM counted WHERE state = 'running' GROUP BY GROUPING SETS ((kind, tenant), (kind), (tenant))
), limits AS (
    SELECT COALESCE(caps.kind, '*') AS kind, 'cap' AS gate, bool_or(COALESCE(running.jobs, 0) >= caps.most) AS reached
      FROM caps LEFT JOIN running
        ON running.kind = COALESCE(caps.kind, '') AND running.tenant = COALESCE(caps.tenant, '')
     GROUP BY 1
     UNION ALL
    SELECT COALESCE(paced.kind, '*'), 'rate', bool_or({RATE_OPENS_AT} > now())
      FROM rates AS paced WHERE paced.most IS NOT NULL
     GROUP BY 1
)
INSERT INTO samples (taken_at, workers, breakers, limits, tenants, waiting_longest, waiting, cut_off)
SELECT now(),
       (SELECT COALESCE(jsonb_object_agg(state, workers), '{{}}')
          FROM (SELECT CASE WHEN lease_expires_at <= now() THEN 'expired' ELSE state END AS state, count(*) AS workers
                  FROM workers WHERE state IN ('active', 'draining') GROUP BY 1) AS fleet),
       (SELECT COALESCE(jsonb_object_agg(known.name, COALESCE(breakers.state, 'closed')), '{{}}')
          FROM (SELECT unnest({dependencies_of("kinds")}) AS name FROM kinds
                 UNION
                SELECT name FROM breakers) AS known LEFT JOIN breakers USING (name)),
       (SELECT COALESCE(jsonb_agg(jsonb_build_array(kind, gate, reached) ORDER BY kind, gate), '[]') FROM limits),
       (SELECT COALESCE(jsonb_agg(jsonb_build_array(tenant, queued, scheduled, running, dead_letter)
                                  ORDER BY queued + scheduled + running + dead_letter DESC, tenant), '[]')
          FROM of_tenants),
       ARRAY(SELECT id FROM waiting_longest ORDER BY oldest, id),
       (SELECT COALESCE(jsonb_agg(jsonb_build_array(queue, kind, jobs) ORDER BY queue, kind), '[]')
          FROM (SELECT queue, kind, sum(jobs) AS jobs FROM lanes GROUP BY queue, kind) AS by_queue),
       ARRAY(SELECT DISTINCT state FROM counted WHERE examined >= $1::int ORDER BY state)
"""  # noqa: S608 - made of constants

_FORGET_SAMPLES = "DELETE FROM samples WHERE taken_at < now() - $1::interval OR taken_at > now()"
_FORGET_KINDS = "DELETE FROM kind_samples WHERE taken_at < now() - $1::interval OR taken_at > now()"
_FORGET_MINUTES = "DELETE FROM finished_by_minute WHERE minute < now() - $1::interval OR minute > now()"
_FORGET_DETAIL = """
UPDATE samples SET tenants = NULL, waiting_longest = NULL, waiting = NULL
 WHERE tenants IS NOT NULL AND taken_at < now()
"""

_NEWEST = f"""
SELECT newest.taken_at, extract(epoch FROM now() - newest.taken_at)::float8 AS age, newest.workers, newest.breakers,
       newest.limits, newest.tenants, newest.waiting_longest, newest.cut_off,
       kind_samples.kind, kind_samples.queued, kind_samples.scheduled, kind_samples.running, kind_samples.dead_letter,
       {readable_time("kind_samples.oldest_runnable_at")} AS oldest_runnable_at
  FROM (SELECT taken_at, workers, breakers, limits, tenants, waiting_longest, cut_off FROM samples
         ORDER BY taken_at DESC LIMIT 1) AS newest
  LEFT JOIN kind_samples ON kind_samples.taken_at = newest.taken_at
 ORDER BY kind_samples.kind
"""  # noqa: S608 - made of constants

_DEPTHS = """
SELECT taken_at, sum(queued)::bigint, sum(scheduled)::bigint, sum(running)::bigint, sum(dead_letter)::bigint
  FROM kind_samples
 WHERE taken_at > now() - $1::interval AND taken_at <= now()
 GROUP BY taken_at
 ORDER BY taken_at
"""


@dataclass(frozen=True, slots=True)
class Depth:
    """How many jobs there were at one time."""

    at: datetime
    queued: int
    scheduled: int
    running: int
    dead_letter: int


@dataclass(frozen=True, slots=True)
class KindSample:
    kind: str
    queued: int
    scheduled: int
    running: int
    dead_letter: int
    oldest_runnable_at: datetime | None
    """Since when the job has been runnable that has waited longest, of those that were counted."""


@dataclass(frozen=True, slots=True)
class TenantSample:
    tenant: str
    queued: int
    scheduled: int
    running: int
    dead_letter: int


@dataclass(frozen=True, slots=True)
class LimitSample:
    kind: str
    """`*` stands for the caps and rates of tenants, whatever the kind."""
    limit: str
    """`cap` or `rate`."""
    reached: bool


@dataclass(frozen=True, slots=True)
class Sample:
    taken_at: datetime
    age: float
    """Seconds since then, by the database's clock."""
    kinds: Sequence[KindSample]
    """Every kind that a worker has served or of which there are jobs."""
    tenants: Sequence[TenantSample]
    """Those with the most jobs."""
    waiting_longest: Sequence[uuid.UUID]
    """The job that has waited longest in each lane, the longest first."""
    workers: dict[str, int]
    """How many are `active` and `draining`, and `expired`: without a lease, and not rescued yet."""
    breakers: dict[str, str]
    """The state of each dependency's breaker."""
    limits: Sequence[LimitSample]
    cut_off: frozenset[str]
    """The states of which there are more jobs than were counted."""


async def take_if_due(connection: Connection, interval: float) -> bool:
    """Take a sample if the newest is older than `interval` seconds. False if it is not, or somebody else is at it."""
    if not await connection.fetchval(_IS_DUE, interval):
        return False
    async with connection.transaction():
        if not await connection.fetchval(_ONE_AT_A_TIME):
            return False
        # A statement of its own, so that it sees the sample of whoever had the lock a moment ago.
        if not await connection.fetchval(_IS_DUE, interval):
            return False
        await connection.execute(SET_LOCAL, *names_and_values(_LIMITS))
        for forget in (_FORGET_SAMPLES, _FORGET_KINDS, _FORGET_MINUTES):
            await connection.execute(forget, KEPT)
        await connection.execute(_FORGET_DETAIL)
        await enqueued_elsewhere.add_up(connection)
        await connection.execute(_TAKE, MOST_COUNTED, MOST_TENANTS, MOST_JOBS)
    return True


async def newest(connection: Connection) -> Sample | None:
    """The newest sample. None until the first one was taken."""
    rows = await connection.fetch(_NEWEST)
    if not rows:
        return None
    first = rows[0]
    return Sample(
        taken_at=first["taken_at"],
        age=max(first["age"], 0.0),
        kinds=[
            KindSample(
                row["kind"],
                row["queued"],
                row["scheduled"],
                row["running"],
                row["dead_letter"],
                row["oldest_runnable_at"],
            )
            for row in rows
            if row["kind"] is not None
        ],
        tenants=[TenantSample(*one) for one in json.loads(first["tenants"] or "[]")],
        waiting_longest=first["waiting_longest"] or [],
        workers=json.loads(first["workers"]),
        breakers=json.loads(first["breakers"]),
        limits=[LimitSample(*one) for one in json.loads(first["limits"])],
        cut_off=frozenset(first["cut_off"]),
    )


async def depths(connection: Connection, within: timedelta) -> list[Depth]:
    """What the samples of the time up to now counted, the oldest first."""
    return [Depth(*row) for row in await connection.fetch(_DEPTHS, within)]
