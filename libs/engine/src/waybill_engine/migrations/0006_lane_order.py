"""Lanes in the order of the database's clock

Revision: engine_0006, after engine_0003
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0006"
down_revision = "engine_0003"
branch_labels = None
depends_on = None

# Ids carry the clock of whoever enqueued the job; `created_at` is always the database's. Workers of release 0.1.0 go by
# this index, too: they sort a lane by id before they take its first jobs, which is slower and just as right.
LANE_ORDER = """
CREATE INDEX jobs_lane_order ON jobs (queue, kind, isolate, priority DESC, tenant, created_at, id)
    WHERE state = 'queued';
DROP INDEX jobs_lanes
"""


def upgrade() -> None:
    execute(LANE_ORDER)
