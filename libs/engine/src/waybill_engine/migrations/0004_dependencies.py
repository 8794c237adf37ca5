"""Kinds with several dependencies, dependencies that ask for time, and failures in a row

Revision: engine_0004, after engine_0003

Workers of release 0.1.0 read and write `kinds.dependency`, which stays the first of `dependencies`.
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0004"
down_revision = "engine_0003"
branch_labels = None
depends_on = None

DEPENDENCIES = """
ALTER TABLE kinds ADD COLUMN dependencies text[];
ALTER TABLE breakers
    ADD COLUMN cooldown_until timestamptz,
    ADD COLUMN cooldown_seconds real NOT NULL DEFAULT 0,
    ADD COLUMN failed_in_a_row integer NOT NULL DEFAULT 0,
    ADD COLUMN away_in_a_row integer NOT NULL DEFAULT 0;
ALTER TABLE breaker_counts ADD COLUMN succeeded_at timestamptz
"""


def upgrade() -> None:
    execute(DEPENDENCIES)
