"""Circuit breakers: their states, what they count, their history, and which kinds lean on what

Revision: 0004, after 0003
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KINDS = """
CREATE TABLE kinds (
    name       text PRIMARY KEY,
    dependency text
)
"""

BREAKERS = """
CREATE TABLE breakers (
    name         text PRIMARY KEY,
    state        text NOT NULL,
    since        timestamptz NOT NULL DEFAULT now(),
    open_until   timestamptz,
    open_seconds real NOT NULL DEFAULT 0,
    successes    integer NOT NULL DEFAULT 0,
    counted_from timestamptz NOT NULL DEFAULT 'epoch',
    reason       text,
    CONSTRAINT breakers_state_known CHECK (state IN ('closed', 'open', 'half_open')),
    CONSTRAINT breakers_until_only_open CHECK (open_until IS NULL OR state = 'open')
)
"""

# A few rows per dependency, rewritten every second: room for that on their page.
COUNTS = """
CREATE TABLE breaker_counts (
    name     text NOT NULL,
    bucket   timestamptz NOT NULL,
    calls    integer NOT NULL,
    failures integer NOT NULL,
    PRIMARY KEY (name, bucket)
) WITH (fillfactor = 50)
"""

EVENTS = """
CREATE TABLE breaker_events (
    name   text NOT NULL,
    id     bigint GENERATED ALWAYS AS IDENTITY,
    at     timestamptz NOT NULL DEFAULT now(),
    event  text NOT NULL,
    detail jsonb NOT NULL,
    PRIMARY KEY (name, id)
)
"""


def upgrade() -> None:
    for statement in (KINDS, BREAKERS, COUNTS, EVENTS):
        op.execute(statement)
