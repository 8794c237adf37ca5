"""A job remembers since when it has been runnable, so that the time until its end can be measured across retries

Revision: engine_0018, after engine_0017
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0018"
down_revision = "engine_0017"
branch_labels = None
depends_on = None

# Nullable and without a default: processes of older releases, which do not name it, go on as before.
COLUMNS = """
ALTER TABLE jobs ADD COLUMN runnable_since timestamptz;
ALTER TABLE shelved_jobs ADD COLUMN runnable_since timestamptz
"""

_JOB = """id, tenant, owner, kind, queue, priority, cost, state, payload, attempts, max_attempts, crashes, max_crashes,
       outages, isolate, run_at, time_limit, lease_owner, lease_token, cancel_requested_at, progress, progress_message,
       error_code, error_message, error_detail, unique_key, unique_scope, unique_until, sequence_key, sequence_at_once,
       sequence_position, parked_for, parent_id, awaited, children, pending_children, traceparent, tells_end,
       created_at, updated_at, started_at, finished_at, pinned_at, checkpoint"""

# A view can only grow at its end.
VIEW = f"""
CREATE OR REPLACE VIEW all_jobs AS
SELECT {_JOB}, false AS shelved, tracestate, runnable_since FROM jobs
 UNION ALL
SELECT {_JOB}, true AS shelved, tracestate, runnable_since FROM shelved_jobs
"""  # noqa: S608 - made of constants


def upgrade() -> None:
    execute(COLUMNS, VIEW)
