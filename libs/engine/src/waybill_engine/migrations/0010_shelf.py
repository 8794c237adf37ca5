"""The shelf: where ended jobs and their history lie, by the day of their id; views of all jobs, wherever they lie

Revision: engine_0010, after engine_0009

Processes of release 0.1.0 read and write `jobs` only, so nothing is shelved while one of their workers lives.
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0010"
down_revision = "engine_0009"
branch_labels = None
depends_on = None

# The janitor makes a partition for each day, and drops it when everything in it is past its age. There is no default
# partition: attaching another one would have to look through it, under a lock that readers wait for.
TABLES = """
CREATE TABLE shelved_jobs (LIKE jobs INCLUDING DEFAULTS, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE INDEX shelved_jobs_ended_badly ON shelved_jobs (state, id) INCLUDE (queue) WHERE state <> 'succeeded';
CREATE INDEX shelved_jobs_of_tenant ON shelved_jobs (tenant, id);
CREATE INDEX shelved_jobs_children ON shelved_jobs (parent_id) WHERE parent_id IS NOT NULL;
CREATE TABLE shelved_job_events (LIKE job_events, PRIMARY KEY (job_id, id)) PARTITION BY RANGE (job_id)
"""

_JOB = """id, tenant, owner, kind, queue, priority, cost, state, payload, attempts, max_attempts, crashes, max_crashes,
       outages, isolate, run_at, time_limit, lease_owner, lease_token, cancel_requested_at, progress, progress_message,
       error_code, error_message, error_detail, unique_key, unique_scope, unique_until, sequence_key, sequence_at_once,
       sequence_position, parked_for, parent_id, awaited, children, pending_children, traceparent, tells_end,
       created_at, updated_at, started_at, finished_at, pinned_at, checkpoint"""
_EVENT = "job_id, id, at, event, lease_token, worker_id, started_at, detail"

VIEWS = f"""
CREATE VIEW all_jobs AS
SELECT {_JOB}, false AS shelved FROM jobs
 UNION ALL
SELECT {_JOB}, true AS shelved FROM shelved_jobs;
CREATE VIEW all_job_events AS
SELECT {_EVENT} FROM job_events
 UNION ALL
SELECT {_EVENT} FROM shelved_job_events
"""  # noqa: S608 - made of constants

# As in engine_0002, for all jobs. An active parent is never on the shelf.
JOB_RETENTION = """
CREATE OR REPLACE VIEW job_retention AS
SELECT jobs.id AS job_id, jobs.tenant, jobs.kind, jobs.state, jobs.finished_at,
       jobs.state IN ('scheduled', 'queued', 'running') OR jobs.pinned_at IS NOT NULL OR tenants.hold_at IS NOT NULL
       OR EXISTS (SELECT FROM jobs AS parent
                   WHERE parent.id = jobs.parent_id AND parent.state IN ('scheduled', 'queued', 'running')) AS kept,
       jobs.unique_scope, jobs.unique_until, jobs.shelved
  FROM all_jobs AS jobs
  LEFT JOIN tenants ON tenants.name = jobs.tenant
"""


def upgrade() -> None:
    execute(TABLES, VIEWS, JOB_RETENTION)
