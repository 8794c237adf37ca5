"""What every retention rule asks about a job, without anything that a pipeline knows of it

Revision: engine_0002, after engine_0001
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0002"
down_revision = "engine_0001"
branch_labels = None
depends_on = None

# The one truth about keeping: whoever removes what belongs to a job asks here first. A job that is `kept` is active,
# pinned, of a tenant under legal hold, or a child of a parent that is active.
JOB_RETENTION = """
CREATE VIEW job_retention AS
SELECT jobs.id AS job_id, jobs.tenant, jobs.kind, jobs.state, jobs.finished_at,
       jobs.state IN ('scheduled', 'queued', 'running') OR jobs.pinned_at IS NOT NULL OR tenants.hold_at IS NOT NULL
       OR EXISTS (SELECT FROM jobs AS parent
                   WHERE parent.id = jobs.parent_id AND parent.state IN ('scheduled', 'queued', 'running')) AS kept,
       jobs.unique_scope, jobs.unique_until
  FROM jobs
  LEFT JOIN tenants ON tenants.name = jobs.tenant
"""


def upgrade() -> None:
    execute(JOB_RETENTION)
