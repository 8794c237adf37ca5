"""Enqueue from SQL: the limits of each kind, and the function `waybill_enqueue`; checkpoints of jobs

Revision: engine_0005, after engine_0004
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0005"
down_revision = "engine_0004"
branch_labels = None
depends_on = None

# Workers of this release write them when they start. A kind that only older workers have served has none.
KIND_LIMITS = """
ALTER TABLE kinds
    ADD COLUMN queue text,
    ADD COLUMN max_attempts smallint,
    ADD COLUMN max_crashes smallint,
    ADD COLUMN time_limit real,
    ADD COLUMN tells_end boolean NOT NULL DEFAULT false
"""

# A UUIDv7 as `waybill.ids` makes them: 48 bits of milliseconds, 12 bits of their parts, and chance. Postgres has a
# function for it only from version 18 on.
NEW_ID = """
CREATE FUNCTION waybill_new_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(micros / 1000), 12, '0') || '7' || lpad(to_hex(micros % 1000 * 4096 / 1000), 3, '0')
            || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid
      FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS micros) AS clock
$$
"""

# The same as `waybill_engine.enqueue` for one job: the same checks, the same row, the same announcement (by a function
# that the next revision makes). A test compares them. The parameters have the names that callers write (`delay => 60`),
# so statements prefer columns and name a parameter in full.
ENQUEUE = """
CREATE FUNCTION waybill_enqueue(
    kind text, tenant text, payload jsonb DEFAULT '{}',
    owner text DEFAULT NULL, queue text DEFAULT NULL, priority integer DEFAULT 0, cost bigint DEFAULT 1,
    delay double precision DEFAULT 0, run_at timestamptz DEFAULT NULL,
    unique_key text DEFAULT NULL, unique_scope text DEFAULT NULL, unique_window double precision DEFAULT NULL,
    traceparent text DEFAULT NULL, job_id uuid DEFAULT NULL,
    max_attempts integer DEFAULT NULL, max_crashes integer DEFAULT NULL, time_limit double precision DEFAULT NULL
) RETURNS TABLE (id uuid, created boolean) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    longest CONSTANT double precision := 10 * 366 * 86400.0;
    known record;
    granted integer;
    new_state text;
    telling boolean;
BEGIN
    payload := COALESCE(payload, '{}');
    priority := COALESCE(priority, 0);
    cost := COALESCE(cost, 1);
    delay := COALESCE(delay, 0);
    job_id := COALESCE(job_id, waybill_new_id());

    IF (length(tenant) BETWEEN 1 AND 200) IS NOT TRUE THEN
        RAISE 'A job''s tenant must have 1 to 200 characters, none of them NUL.' USING ERRCODE = '22023';
    END IF;
    IF (length(owner) BETWEEN 1 AND 200) IS FALSE THEN
        RAISE 'A job''s owner must have 1 to 200 characters, none of them NUL.' USING ERRCODE = '22023';
    END IF;
    IF priority NOT BETWEEN -32768 AND 32767 THEN
        RAISE 'A job''s priority must be between -32768 and 32767.' USING ERRCODE = '22023';
    END IF;
    IF cost < 1 THEN
        RAISE 'A job''s cost must be a whole number, at least 1.' USING ERRCODE = '22023';
    END IF;
    IF delay NOT BETWEEN 0 AND longest THEN
        RAISE 'A job''s delay must be between 0 seconds and ten years.' USING ERRCODE = '22023';
    END IF;
    IF (run_at > '1970-01-01 00:00:00Z' AND run_at < '3000-01-01 00:00:00Z') IS FALSE THEN
        RAISE 'A job''s run_at must be between the years 1970 and 3000.' USING ERRCODE = '22023';
    END IF;
    IF length(traceparent) > 200 THEN
        RAISE 'A job''s traceparent must have at most 200 characters, none of them NUL.' USING ERRCODE = '22023';
    END IF;
    IF jsonb_typeof(payload) <> 'object' THEN
        RAISE 'A job''s payload must be a JSON object.' USING ERRCODE = '22023';
    END IF;
    -- The limit is on compact JSON. Postgres writes a space after each comma and colon, which at most doubles it.
    IF octet_length(payload::text) > 65536 AND (
        octet_length(payload::text) > 131072
        OR octet_length(payload::text) - regexp_count(regexp_replace(
               payload::text, '"([^"\\\\]|\\\\.)*"', '', 'g'), ' ') > 65536
    ) THEN
        RAISE 'A job''s payload must be at most 65536 bytes of JSON. Keep bigger things in storage.'
            USING ERRCODE = '22023';
    END IF;

    IF unique_key IS NULL AND (unique_scope IS NOT NULL OR unique_window IS NOT NULL) THEN
        RAISE 'A unique scope or window needs a unique key.' USING ERRCODE = '22023';
    END IF;
    IF unique_key IS NOT NULL THEN
        unique_scope := COALESCE(unique_scope, CASE WHEN unique_window IS NULL THEN 'active' ELSE 'window' END);
        IF length(unique_key) NOT BETWEEN 1 AND 500 THEN
            RAISE 'A unique key must have 1 to 500 characters, none of them NUL.' USING ERRCODE = '22023';
        END IF;
        IF unique_scope NOT IN ('active', 'window', 'forever') THEN
            RAISE 'A unique scope is active, window or forever.' USING ERRCODE = '22023';
        END IF;
        IF (unique_window > 0 AND unique_window <= longest) IS FALSE THEN
            RAISE 'A unique key''s window must be more than 0 seconds and at most ten years.' USING ERRCODE = '22023';
        END IF;
        IF (unique_scope = 'window') <> (unique_window IS NOT NULL) THEN
            RAISE 'The unique scope ''window'' needs a window in seconds, and no other scope takes one.'
                USING ERRCODE = '22023';
        END IF;
    END IF;

    -- Whoever brings all limits along need not wait for a worker to make the kind known.
    IF queue IS NULL OR max_attempts IS NULL OR max_crashes IS NULL OR time_limit IS NULL THEN
        SELECT name, queue, max_attempts, max_crashes, time_limit INTO known
          FROM kinds WHERE name = waybill_enqueue.kind;
        IF known.name IS NULL THEN
            RAISE 'There is no kind %.', COALESCE(quote_literal(left(kind, 80)), 'NULL') USING ERRCODE = '42704',
                HINT = format('A worker makes its kinds known when it starts. Known kinds: %s.', COALESCE(
                    (SELECT string_agg(kinds.name, ', ' ORDER BY kinds.name)
                       FROM kinds WHERE kinds.max_attempts IS NOT NULL), 'none'));
        END IF;
        IF known.max_attempts IS NULL THEN
            RAISE 'The limits of kind % are not known.', quote_literal(kind) USING ERRCODE = '42704',
                HINT = 'Only workers of an older release have served it. Start a worker of this release.';
        END IF;
        queue := COALESCE(queue, known.queue);
        max_attempts := COALESCE(max_attempts, known.max_attempts);
        max_crashes := COALESCE(max_crashes, known.max_crashes);
        time_limit := COALESCE(time_limit, known.time_limit);
    END IF;
    IF (kind ~ '^[a-z][a-z0-9_]{0,62}$') IS NOT TRUE OR queue !~ '^[a-z][a-z0-9_]{0,62}$' THEN
        RAISE '% cannot be a kind in queue %', COALESCE(quote_literal(left(kind, 80)), 'NULL'),
            quote_literal(left(queue, 80)) USING ERRCODE = '22023',
            HINT = 'A name is lower case letters, digits and _, at most 63.';
    END IF;
    IF max_attempts NOT BETWEEN 1 AND 1000 OR max_crashes NOT BETWEEN 1 AND 1000 THEN
        RAISE 'A job''s max_attempts and max_crashes must be between 1 and 1,000.' USING ERRCODE = '22023';
    END IF;
    IF NOT (time_limit > 0 AND time_limit <= 30 * 86400) THEN
        RAISE 'A job''s time_limit must be more than 0 seconds and at most 30 days.' USING ERRCODE = '22023';
    END IF;

    IF priority > 0 THEN
        granted := COALESCE((SELECT top_priority FROM tenants WHERE tenants.name = waybill_enqueue.tenant), 0);
        IF priority > granted THEN
            RAISE 'Priority % is above what tenant % may use (%).', priority, tenant, granted
                USING ERRCODE = '42501',
                HINT = format('An operator can grant it: waybill tenant priority %s %s', tenant, priority);
        END IF;
    END IF;

    IF unique_scope IN ('window', 'forever') THEN
        UPDATE jobs SET unique_key = NULL, unique_scope = NULL, unique_until = NULL
         WHERE jobs.tenant = waybill_enqueue.tenant AND jobs.kind = waybill_enqueue.kind
           AND jobs.unique_key = waybill_enqueue.unique_key
           AND jobs.unique_scope IN ('window', 'forever') AND jobs.unique_until <= now();
    END IF;
    run_at := COALESCE(run_at, now() + delay * interval '1 second');
    telling := COALESCE((SELECT kinds.tells_end FROM kinds WHERE kinds.name = waybill_enqueue.kind), false);
    new_state := CASE WHEN run_at > now() THEN 'scheduled' ELSE 'queued' END;
    -- The job that has the key may end between the two statements; then the key is free, and the next round takes it.
    FOR _ IN 1..5 LOOP
        INSERT INTO jobs (
            id, tenant, owner, kind, queue, priority, cost, payload, max_attempts, max_crashes, time_limit,
            state, run_at, unique_key, unique_scope, unique_until, traceparent, tells_end, created_at, updated_at
        )
        SELECT waybill_enqueue.job_id, waybill_enqueue.tenant,
               COALESCE(waybill_enqueue.owner, waybill_enqueue.tenant), waybill_enqueue.kind, waybill_enqueue.queue,
               waybill_enqueue.priority, waybill_enqueue.cost, waybill_enqueue.payload,
               waybill_enqueue.max_attempts, waybill_enqueue.max_crashes, waybill_enqueue.time_limit,
               new_state, waybill_enqueue.run_at, waybill_enqueue.unique_key, waybill_enqueue.unique_scope,
               now() + waybill_enqueue.unique_window * interval '1 second', waybill_enqueue.traceparent, telling,
               now(), now()
            ON CONFLICT DO NOTHING;
        IF FOUND THEN
            IF new_state = 'queued' THEN
                PERFORM waybill_announce(
                    'waybill_lanes', json_build_array(queue, kind, priority, tenant)::text,
                    (extract(epoch FROM now()) * 1000000)::bigint, 1);
            ELSE
                PERFORM waybill_announce('waybill_scheduled', extract(epoch FROM run_at - now())::text);
            END IF;
            id := job_id;
            created := true;
            RETURN NEXT;
            RETURN;
        END IF;
        IF unique_key IS NULL THEN
            RAISE 'There is a job with the id % already.', job_id USING ERRCODE = '22023';
        END IF;
        IF unique_scope = 'active' THEN
            SELECT jobs.id INTO id FROM jobs
             WHERE jobs.tenant = waybill_enqueue.tenant AND jobs.kind = waybill_enqueue.kind
               AND jobs.unique_key = waybill_enqueue.unique_key
               AND jobs.unique_scope = 'active' AND jobs.state IN ('scheduled', 'queued', 'running');
        ELSE
            SELECT jobs.id INTO id FROM jobs
             WHERE jobs.tenant = waybill_enqueue.tenant AND jobs.kind = waybill_enqueue.kind
               AND jobs.unique_key = waybill_enqueue.unique_key
               AND jobs.unique_scope IN ('window', 'forever');
        END IF;
        IF FOUND THEN
            created := false;
            RETURN NEXT;
            RETURN;
        END IF;
    END LOOP;
    RAISE 'The unique key % is contended. Try again.', quote_literal(unique_key) USING ERRCODE = '40001';
END $$
"""

CHECKPOINTS = "ALTER TABLE jobs ADD COLUMN checkpoint jsonb"


def upgrade() -> None:
    execute(KIND_LIMITS, NEW_ID, ENQUEUE, CHECKPOINTS)
