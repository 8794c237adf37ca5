"""What one look at the database tells about a job and everything it may wait for. `explain` says it in words."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from waybill.db.column_types import readable_time
from waybill_engine.caps import RUNNING_ON_WORKER
from waybill_engine.rates import RATE_OPENS_AT
from waybill_engine.rules import (
    BREAKER_LIMITS,
    WORKER_MAY_CLAIM,
    caps_on,
    dependencies_of,
    kind_is_blocked,
    queue_is_paused,
    rates_on,
)
from waybill_engine.sequences import holds_place, in_sequence, parked

if TYPE_CHECKING:
    from waybill.db.database import Connection

MOST_COUNTED = 1000
"""Beyond this many jobs ahead, nobody cares about the number, and counting them would cost too much."""

_SERVES_THE_JOB = f"""{WORKER_MAY_CLAIM} AND NOT workers.isolating
                  AND jobs.kind = ANY (workers.kinds) AND jobs.queue = ANY (workers.queues)"""

# Ahead are the jobs that are claimed before it whoever's turn it is: the older ones of its own lane, and those of a
# higher priority that its workers serve. Other tenants, and other kinds of its own tenant, take turns with it. LIMIT
# bounds the counting, because a page may ask this every few seconds.
_LOOK = f"""
SELECT now() AS now, jobs.id, jobs.kind, jobs.queue, jobs.state, {readable_time("jobs.run_at")} AS run_at,
       jobs.attempts, jobs.max_attempts,
       jobs.isolate, jobs.error_code, jobs.error_message, jobs.error_detail::text, jobs.finished_at, jobs.started_at,
       jobs.children, jobs.pending_children,
       {parked("jobs")} AS parked, jobs.sequence_key, jobs.sequence_at_once, earlier.jobs AS earlier,
       jobs.cancel_requested_at IS NOT NULL AS stopping,
       queues.paused_at, queues.paused_reason,
       owner.name AS worker, owner.lease_expires_at,
       breaker.name AS dependency, breaker.state AS breaker, breaker.open_until, breaker.reason AS breaker_reason,
       breaker.cooldown_until,
       full_cap.tenant AS cap_tenant, full_cap.kind AS cap_kind, full_cap.most AS cap_most,
       full_cap.running AS cap_running,
       closed_rate.tenant AS rate_tenant, closed_rate.kind AS rate_kind, closed_rate.most AS rate_most,
       closed_rate.seconds AS rate_seconds, closed_rate.opens_at AS rate_opens_at,
       serving.workers, sharing.turns, lost.detail AS lost,
       CASE WHEN jobs.state = 'queued' AND NOT jobs.isolate THEN ahead.jobs END AS ahead
  FROM jobs
  LEFT JOIN queues ON queues.name = jobs.queue
  LEFT JOIN kinds ON kinds.name = jobs.kind
  LEFT JOIN LATERAL (
           SELECT name, state, open_until, reason, cooldown_until FROM breakers
            WHERE breakers.name = ANY ({dependencies_of("kinds")}) AND {BREAKER_LIMITS}
            ORDER BY breakers.state <> 'open', breakers.state = 'closed', breakers.name
            LIMIT 1
       ) AS breaker ON true
  LEFT JOIN workers AS owner ON owner.id = jobs.lease_owner
  LEFT JOIN LATERAL (
           SELECT caps.tenant, caps.kind, caps.most, counted.running
             FROM {caps_on("jobs")} AS caps, LATERAL (
                      SELECT COALESCE(sum({RUNNING_ON_WORKER}), 0)::bigint AS running
                        FROM workers
                       WHERE workers.state IN ('active', 'draining')
                  ) AS counted
            WHERE counted.running >= caps.most AND jobs.state = 'queued'
            ORDER BY caps.id
            LIMIT 1
       ) AS full_cap ON true
  LEFT JOIN LATERAL (
           SELECT paced.tenant, paced.kind, paced.most, paced.seconds, {RATE_OPENS_AT} AS opens_at
             FROM {rates_on("jobs")} AS paced
            WHERE {RATE_OPENS_AT} > now() AND jobs.state = 'queued'
            ORDER BY opens_at DESC
            LIMIT 1
       ) AS closed_rate ON true
  LEFT JOIN LATERAL (
           SELECT detail::text FROM job_events
            WHERE job_events.job_id = jobs.id AND job_events.lease_token = jobs.lease_token AND detail ? 'cause'
              AND jobs.state IN ('queued', 'scheduled')
            ORDER BY job_events.job_id, job_events.id DESC
            LIMIT 1
       ) AS lost ON true,
       LATERAL (
           SELECT count(*) AS jobs
             FROM ((SELECT FROM jobs AS other
                     WHERE {in_sequence("other", "jobs")} AND {holds_place("other")} AND {parked("jobs")}
                     LIMIT $2 + 1)
                   UNION ALL
                   (SELECT FROM jobs AS other
                     WHERE {in_sequence("other", "jobs")} AND {parked("other")} AND {parked("jobs")}
                       AND other.sequence_position < jobs.sequence_position
                     LIMIT $2 + 1)
                    LIMIT $2 + 1) AS counted
       ) AS earlier,
       LATERAL (
           SELECT count(*) AS workers FROM workers WHERE {_SERVES_THE_JOB}
       ) AS serving,
       LATERAL (
           SELECT array_agg(queue) AS queues, array_agg(kind) AS kinds
             FROM (SELECT DISTINCT queue, kind
                     FROM workers, unnest(workers.queues) AS queue, unnest(workers.kinds) AS kind
                    WHERE {_SERVES_THE_JOB}
                      AND NOT {queue_is_paused("queue")}
                      AND NOT {kind_is_blocked("kind")}) AS lanes
       ) AS served,
       LATERAL (
           SELECT count(*) AS jobs
             FROM (SELECT FROM unnest(served.queues, served.kinds) AS lane (queue, kind), LATERAL (
                       (SELECT FROM jobs AS other
                         WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                           AND other.priority > jobs.priority AND other.state = 'queued'
                         LIMIT $2 + 1)
                       UNION ALL
                       (SELECT FROM jobs AS other
                         WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                           AND other.priority = jobs.priority AND other.tenant = jobs.tenant
                           AND other.owner = jobs.owner AND (other.created_at, other.id) < (jobs.created_at, jobs.id)
                           AND other.state = 'queued' AND lane.kind = jobs.kind AND lane.queue = jobs.queue
                         LIMIT $2 + 1)
                   ) AS earlier
                    LIMIT $2 + 1) AS counted
       ) AS ahead,
       LATERAL (
           SELECT EXISTS (
                      SELECT FROM unnest(served.queues, served.kinds) AS lane (queue, kind), LATERAL (
                          (SELECT FROM jobs AS other
                            WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                              AND other.priority = jobs.priority
                              AND (other.tenant, other.owner) < (jobs.tenant, jobs.owner)
                              AND other.state = 'queued'
                            LIMIT 1)
                          UNION ALL
                          (SELECT FROM jobs AS other
                            WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                              AND other.priority = jobs.priority
                              AND (other.tenant, other.owner) > (jobs.tenant, jobs.owner)
                              AND other.state = 'queued'
                            LIMIT 1)
                          UNION ALL
                          (SELECT FROM jobs AS other
                            WHERE other.queue = lane.queue AND other.kind = lane.kind AND other.isolate = false
                              AND other.priority = jobs.priority AND other.tenant = jobs.tenant
                              AND other.state = 'queued' AND (lane.kind <> jobs.kind OR lane.queue <> jobs.queue)
                            LIMIT 1)
                      ) AS other
                  ) AS turns
       ) AS sharing
 WHERE jobs.id = $1
"""  # noqa: S608 - made of constants

# Whatever is on the shelf has ended.
_LOOK_ON_SHELF = """
SELECT state, finished_at, error_code, error_message, error_detail::text FROM shelved_jobs WHERE id = $1
"""


async def look(connection: Connection, job_id: uuid.UUID) -> Mapping[str, Any] | None:
    """The facts about a job, None if there is no such job. Of an ended one on the shelf, those that explain its end."""
    row = await connection.fetchrow(_LOOK, job_id, MOST_COUNTED)
    row = row or await connection.fetchrow(_LOOK_ON_SHELF, job_id)
    return dict(row) if row is not None else None
