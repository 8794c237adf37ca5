"""Families: how many children a job has had, and which jobs are waited for by their parent

Revision: 0005, after 0004
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Constants as defaults: no row is rewritten.
COLUMNS = """
ALTER TABLE jobs
    ADD COLUMN children integer NOT NULL DEFAULT 0,
    ADD COLUMN awaited boolean NOT NULL DEFAULT false
"""


def upgrade() -> None:
    op.execute(COLUMNS)
