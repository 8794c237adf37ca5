"""Jobs that run one after the other, or a few at once, by a key

Revision: engine_0008, after engine_0003
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0008"
down_revision = "engine_0003"
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

# Both have only jobs of sequences, so other jobs pay for neither.
INDEXES = """
CREATE INDEX jobs_parked ON jobs (tenant, kind, sequence_key, sequence_position)
    WHERE parked_for IS NOT NULL;
CREATE INDEX jobs_in_turn ON jobs (tenant, kind, sequence_key)
    WHERE sequence_key IS NOT NULL AND parked_for IS NULL AND state IN ('scheduled', 'queued', 'running')
"""


def upgrade() -> None:
    execute(COLUMNS)
    execute(INDEXES)
