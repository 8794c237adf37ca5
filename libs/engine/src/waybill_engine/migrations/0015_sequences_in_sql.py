"""Jobs enqueued from SQL may be in a sequence; an erasure is found by whom it concerns

Revision: engine_0015, after engine_0014
"""

from __future__ import annotations

from waybill.db.migrations.statements import create_index, execute

revision = "engine_0015"
down_revision = "engine_0014"
branch_labels = None
depends_on = None

# A few lines of a long function change. With new parameters it is another function, so the old one goes: a call would
# fit both.
#
# The job is parked, and a worker lets it in. The function itself cannot: it would have to see what was committed after
# its caller's statement began.
SEQUENCES = """
DO $$
DECLARE
    definition text := (SELECT pg_get_functiondef(oid) FROM pg_proc
                         WHERE proname = 'waybill_enqueue' AND pronamespace = current_schema()::regnamespace);
    change text[];
BEGIN
    FOREACH change SLICE 1 IN ARRAY ARRAY[
        ARRAY['time_limit double precision DEFAULT NULL::double precision)',
              'time_limit double precision DEFAULT NULL::double precision,'
              ' sequence_key text DEFAULT NULL, sequence_at_once integer DEFAULT 1)'],
        ARRAY['    IF unique_key IS NULL AND (unique_scope IS NOT NULL',
              '    IF length(sequence_key) NOT BETWEEN 1 AND 200 THEN
        RAISE ''A sequence key must have 1 to 200 characters, none of them NUL.'' USING ERRCODE = ''22023'';
    END IF;
    sequence_at_once := COALESCE(sequence_at_once, 1);
    IF sequence_at_once NOT BETWEEN 1 AND 1000 THEN
        RAISE ''A sequence may have 1 to 1000 jobs at once.'' USING ERRCODE = ''22023'';
    END IF;

    IF unique_key IS NULL AND (unique_scope IS NOT NULL'],
        ARRAY['CASE WHEN run_at > now() THEN ''scheduled''',
              'CASE WHEN run_at > now() OR sequence_key IS NOT NULL THEN ''scheduled'''],
        ARRAY['traceparent, tells_end, created_at, updated_at',
              'traceparent, tells_end,
            sequence_key, sequence_at_once, sequence_position, parked_for, created_at, updated_at'],
        ARRAY['new_state, waybill_enqueue.run_at,',
              'new_state,
               CASE WHEN waybill_enqueue.sequence_key IS NOT NULL THEN ''infinity'' ELSE waybill_enqueue.run_at END,'],
        ARRAY['telling,
               now(), now()',
              'telling,
               waybill_enqueue.sequence_key,
               CASE WHEN waybill_enqueue.sequence_key IS NOT NULL THEN waybill_enqueue.sequence_at_once END,
               CASE WHEN waybill_enqueue.sequence_key IS NOT NULL THEN nextval(''job_positions'') END,
               CASE WHEN waybill_enqueue.sequence_key IS NOT NULL THEN waybill_enqueue.run_at END,
               now(), now()'],
        ARRAY['            IF new_state = ''queued'' THEN',
              '            IF sequence_key IS NOT NULL THEN
                INSERT INTO missed_turns (tenant, kind, sequence_key)
                VALUES (waybill_enqueue.tenant, waybill_enqueue.kind, waybill_enqueue.sequence_key);
                PERFORM waybill_announce(''waybill_scheduled'', ''0'');
            ELSIF new_state = ''queued'' THEN']
    ] LOOP
        IF strpos(definition, change[1]) = 0 THEN
            RAISE 'The function waybill_enqueue is not the one that engine_0013 made: it has no "%".', change[1];
        END IF;
        definition := replace(definition, change[1], change[2]);
    END LOOP;
    DROP FUNCTION waybill_enqueue;
    EXECUTE definition;
END $$
"""


def upgrade() -> None:
    create_index("erasures_of_tenants", "ON erasures (tenant) WHERE tenant IS NOT NULL")
    create_index("erasures_of_owners", "ON erasures (owner) WHERE owner IS NOT NULL")
    execute(SEQUENCES)
