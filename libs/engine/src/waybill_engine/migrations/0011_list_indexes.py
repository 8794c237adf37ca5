"""Indexes by which jobs are listed: those of a tenant, and those that failed or were cancelled

Revision: engine_0011, after engine_0010
"""

from __future__ import annotations

from waybill.db.migrations.statements import create_index

revision = "engine_0011"
down_revision = "engine_0010"
branch_labels = None
depends_on = None

# A claim touches neither: a running job is in no list's index and is found through `jobs_held`. Jobs that succeed never
# come into the second one.
OF_TENANT = "ON jobs (tenant, id) WHERE lease_owner IS NULL"
ENDED_BADLY = "ON jobs (state, id) INCLUDE (queue) WHERE state IN ('failed', 'cancelled')"


def upgrade() -> None:
    create_index("jobs_of_tenant", OF_TENANT)
    create_index("jobs_ended_badly", ENDED_BADLY)
