"""Periodic jobs

Revision: 0003, after 0002
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SCHEDULES = """
CREATE TABLE schedules (
    name          text PRIMARY KEY,
    cron          text NOT NULL,
    timezone      text NOT NULL,
    missed        text NOT NULL,
    grace         real NOT NULL,

    kind          text NOT NULL,
    queue         text NOT NULL,
    tenant        text NOT NULL,
    payload       jsonb NOT NULL,
    priority      smallint NOT NULL DEFAULT 0,
    cost          bigint NOT NULL DEFAULT 1,
    max_attempts  smallint NOT NULL,
    max_crashes   smallint NOT NULL,
    time_limit    real NOT NULL,

    paused_at     timestamptz,
    paused_reason text,
    next_at       timestamptz,
    last_tick     timestamptz,
    last_job_id   uuid,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT schedules_missed_known CHECK (missed IN ('skip', 'once', 'all'))
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE paused_at IS NULL
"""


def upgrade() -> None:
    for statement in SCHEDULES.split(";"):
        op.execute(statement)
