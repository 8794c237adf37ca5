"""Announcements: how workers hear that there is something to do, sent when the transaction commits.

Four channels. `waybill_jobs` names a lane that has jobs and the oldest of them, or only a queue, and workers look for
themselves. `waybill_scheduled` and `waybill_schedules` say in how many seconds a job or a schedule is due.
`waybill_control` has a worker's id (look at your jobs) or `look` (the rules have changed). Nothing depends on any of
them: without announcements, polling finds everything a little later.

The SQL here is a statement's last common table expressions. The statement provides what they read, and its final
SELECT must read from them, or Postgres would leave them out.
"""

from __future__ import annotations

import json
import uuid

from waybill_engine.lanes import Lane

JOBS = "waybill_jobs"
SCHEDULED = "waybill_scheduled"
SCHEDULES = "waybill_schedules"
CONTROL = "waybill_control"
CHANNELS = (JOBS, SCHEDULED, SCHEDULES, CONTROL)

ANNOUNCE_LANES = """lanes AS (
    SELECT queue, kind, priority, tenant, min(id::text) AS first, count(*) OVER () > 16 AS many
      FROM ready GROUP BY queue, kind, priority, tenant
), announced AS (
    SELECT count(pg_notify('waybill_jobs', CASE
               WHEN many THEN queue ELSE json_build_array(queue, kind, priority, tenant, first)::text END)) AS lanes
      FROM lanes
)"""
"""Announces the lanes of the jobs in `ready` (id, queue, kind, priority, tenant). Beyond 16, it names queues."""

ANNOUNCE_QUEUES = """announced AS (
    SELECT count(pg_notify('waybill_jobs', queue)) AS queues FROM (SELECT DISTINCT queue FROM ready) AS ready_queues
)"""
"""Announces the queues of the jobs in `ready` (queue), for jobs that come back into the middle of a lane."""

ANNOUNCE_DUE = """announced_due AS (
    SELECT count(pg_notify('waybill_scheduled', next_in::text)) AS jobs
      FROM (SELECT extract(epoch FROM min(run_at) - now()) AS next_in FROM later) AS due
     WHERE next_in IS NOT NULL
)"""
"""Announces when the first of the jobs in `later` (run_at) is due."""


def parse_lane(payload: str) -> tuple[Lane, uuid.UUID] | None:
    """The lane that a `waybill_jobs` announcement names and its first job; None if it names only a queue."""
    if not payload.startswith("["):
        return None
    # Anybody who may connect may notify, so what does not fit is refused.
    queue, kind, priority, tenant, first = json.loads(payload)
    texts = all(isinstance(text, str) for text in (queue, kind, tenant, first))
    if not texts or type(priority) is not int or not -32768 <= priority <= 32767:
        raise ValueError(payload)
    return Lane(queue, kind, priority, tenant), uuid.UUID(first)
