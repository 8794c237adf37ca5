"""A job keeps the tracestate that belongs to its traceparent

Revision: engine_0016, after engine_0015
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0016"
down_revision = "engine_0015"
branch_labels = None
depends_on = None

# Nullable and without a default: processes of older releases, which do not name it, go on as before.
COLUMNS = """
ALTER TABLE jobs ADD COLUMN tracestate text;
ALTER TABLE shelved_jobs ADD COLUMN tracestate text
"""

_JOB = """id, tenant, owner, kind, queue, priority, cost, state, payload, attempts, max_attempts, crashes, max_crashes,
       outages, isolate, run_at, time_limit, lease_owner, lease_token, cancel_requested_at, progress, progress_message,
       error_code, error_message, error_detail, unique_key, unique_scope, unique_until, sequence_key, sequence_at_once,
       sequence_position, parked_for, parent_id, awaited, children, pending_children, traceparent, tells_end,
       created_at, updated_at, started_at, finished_at, pinned_at, checkpoint"""

# A view can only grow at its end.
VIEW = f"""
CREATE OR REPLACE VIEW all_jobs AS
SELECT {_JOB}, false AS shelved, tracestate FROM jobs
 UNION ALL
SELECT {_JOB}, true AS shelved, tracestate FROM shelved_jobs
"""  # noqa: S608 - made of constants

# A few lines of a long function change. With a new parameter it is another function, so the old one goes: a call would
# fit both.
ENQUEUE = """
DO $$
DECLARE
    definition text := (SELECT pg_get_functiondef(oid) FROM pg_proc
                         WHERE proname = 'waybill_enqueue' AND pronamespace = current_schema()::regnamespace);
    change text[];
BEGIN
    FOREACH change SLICE 1 IN ARRAY ARRAY[
        ARRAY['sequence_at_once integer DEFAULT 1)',
              'sequence_at_once integer DEFAULT 1, tracestate text DEFAULT NULL)'],
        ARRAY['    IF jsonb_typeof(payload) <> ''object'' THEN',
              '    IF length(tracestate) > 512 THEN
        RAISE ''A job''''s tracestate must have at most 512 characters, none of them NUL.'' USING ERRCODE = ''22023'';
    END IF;
    IF jsonb_typeof(payload) <> ''object'' THEN'],
        ARRAY['traceparent, tells_end,', 'traceparent, tracestate, tells_end,'],
        ARRAY['waybill_enqueue.traceparent, telling,',
              'waybill_enqueue.traceparent, waybill_enqueue.tracestate, telling,']
    ] LOOP
        IF strpos(definition, change[1]) = 0 THEN
            RAISE 'The function waybill_enqueue is not the one that engine_0015 made: it has no "%".', change[1];
        END IF;
        definition := replace(definition, change[1], change[2]);
    END LOOP;
    DROP FUNCTION waybill_enqueue;
    EXECUTE definition;
END $$
"""


def upgrade() -> None:
    execute(COLUMNS, VIEW, ENQUEUE)
