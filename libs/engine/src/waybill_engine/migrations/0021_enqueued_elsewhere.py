"""The SQL function counts the jobs that it enqueues

Revision: engine_0021, after engine_0020
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0021"
down_revision = "engine_0020"
branch_labels = None
depends_on = None

# Each caller adds a row, because adding to one number would make callers wait for each other. Whoever takes a sample
# adds the rows up.
COUNTS = """
CREATE TABLE enqueued_elsewhere (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    by   text NOT NULL,
    jobs bigint NOT NULL
)
"""

# One line of a long function is added. It keeps its parameters, so processes of older releases call it as before.
ENQUEUE = """
DO $$
DECLARE
    definition text := (SELECT pg_get_functiondef(oid) FROM pg_proc
                         WHERE proname = 'waybill_enqueue' AND pronamespace = current_schema()::regnamespace);
    before CONSTANT text := '            id := job_id;
            created := true;';
BEGIN
    IF strpos(definition, before) = 0 THEN
        RAISE 'The function waybill_enqueue is not the one that engine_0016 made: it has no "%".', before;
    END IF;
    EXECUTE replace(definition, before,
        '            INSERT INTO enqueued_elsewhere (kind, by, jobs) VALUES (waybill_enqueue.kind, ''sql'', 1);
' || before);
END $$
"""


def upgrade() -> None:
    execute(COUNTS, ENQUEUE)
