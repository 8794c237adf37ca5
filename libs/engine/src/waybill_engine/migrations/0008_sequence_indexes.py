"""The indexes of jobs that run in a sequence

Revision: engine_0008, after engine_0007
"""

from __future__ import annotations

from waybill.db.migrations.statements import create_index

revision = "engine_0008"
down_revision = "engine_0007"
branch_labels = None
depends_on = None

# Both have only jobs of sequences, so other jobs pay for neither.
PARKED = "ON jobs (tenant, kind, sequence_key, sequence_position) WHERE parked_for IS NOT NULL"
IN_TURN = """
ON jobs (tenant, kind, sequence_key)
    WHERE sequence_key IS NOT NULL AND parked_for IS NULL AND state IN ('scheduled', 'queued', 'running')
"""


def upgrade() -> None:
    create_index("jobs_parked", PARKED)
    create_index("jobs_in_turn", IN_TURN)
