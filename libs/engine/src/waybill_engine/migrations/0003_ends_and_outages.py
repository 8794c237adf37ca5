"""Jobs whose end other pipelines hear of; database outages counted as such; workers that were missed after an outage

Revision: engine_0003, after engine_0002
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0003"
down_revision = "engine_0002"
branch_labels = None
depends_on = None

# Constant defaults, so that no row is rewritten and the table is locked only for a moment.
COLUMNS = """
ALTER TABLE jobs
    ADD COLUMN tells_end boolean NOT NULL DEFAULT false,
    ADD COLUMN outages smallint NOT NULL DEFAULT 0;
ALTER TABLE workers ADD COLUMN missed_at timestamptz
"""


def upgrade() -> None:
    execute(COLUMNS)
