"""Jobs that run one after the other, or a few at once, by a key

Revision: engine_0007, after engine_0006
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0007"
down_revision = "engine_0006"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE jobs
    ADD COLUMN sequence_key text,
    ADD COLUMN sequence_at_once smallint,
    ADD COLUMN sequence_position bigint,
    ADD COLUMN parked_for timestamptz;
CREATE SEQUENCE job_positions;
CREATE TABLE missed_turns (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    kind text NOT NULL,
    sequence_key text NOT NULL
)
"""


def upgrade() -> None:
    execute(COLUMNS)
