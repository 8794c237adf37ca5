"""A worker says when it registered by the clock of its node, which also stamps when its container started

Revision: engine_0020, after engine_0019
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0020"
down_revision = "engine_0019"
branch_labels = None
depends_on = None

# Workers of older releases leave it empty: nobody can tell whether their container was restarted since.
COLUMN = "ALTER TABLE workers ADD COLUMN node_started_at timestamptz"


def upgrade() -> None:
    execute(COLUMN)
