"""Lanes by tenant, weights and caps

Revision: 0002, after 0001
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# A lane is queue, kind, suspects or not, priority and tenant; in it, the oldest first. Replaces the two indexes of
# claims that knew no tenants.
LANES = """
CREATE INDEX jobs_lanes ON jobs (queue, kind, isolate, priority DESC, tenant, id) WHERE state = 'queued';
DROP INDEX jobs_ready;
DROP INDEX jobs_isolated
"""

# What runs, by worker; kind and tenant let caps count without reading a row too many.
LEASED = """
CREATE INDEX jobs_held ON jobs (lease_owner, kind, tenant) WHERE lease_owner IS NOT NULL;
DROP INDEX jobs_leased;
CREATE INDEX workers_live ON workers (id) WHERE state IN ('active', 'draining')
"""

TENANTS = """
CREATE TABLE tenants (
    name         text PRIMARY KEY,
    weight       real NOT NULL DEFAULT 1,
    top_priority smallint NOT NULL DEFAULT 0,
    CONSTRAINT tenants_weight_counts CHECK (weight > 0)
)
"""

CAPS = """
CREATE TABLE caps (
    id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text,
    kind   text,
    most   integer NOT NULL,
    CONSTRAINT caps_of_somebody UNIQUE NULLS NOT DISTINCT (tenant, kind),
    CONSTRAINT caps_name_somebody CHECK (tenant IS NOT NULL OR kind IS NOT NULL),
    CONSTRAINT caps_most_counts CHECK (most >= 0)
)
"""


def upgrade() -> None:
    for script in (LANES, LEASED, TENANTS, CAPS):
        for statement in script.split(";"):
            op.execute(statement)
