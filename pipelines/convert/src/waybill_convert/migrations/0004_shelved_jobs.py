"""Conversions of jobs that lie on the engine's shelf

Revision: convert_0004, after convert_0003
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "convert_0004"
down_revision = "convert_0003"
branch_labels = None
depends_on = ("engine_0010",)

# As in convert_0002 and convert_0001, but a job that went from one of the engine's tables to the other is not gone.
LEAVES_WITH_JOB = (
    """
CREATE OR REPLACE FUNCTION conversion_leaves_with_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose text;
BEGIN
    IF EXISTS (SELECT FROM all_jobs WHERE id = OLD.id) THEN
        RETURN NULL;
    END IF;
    DELETE FROM conversions WHERE job_id = OLD.id AND listed_at IS NULL;
    UPDATE conversions
       SET deleted_at = now(), original_name = '', sha256 = '', upload_deleted_at = COALESCE(upload_deleted_at, now()),
           changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = OLD.id AND deleted_at IS NULL
    RETURNING owner INTO whose;
    IF FOUND THEN
        PERFORM pg_notify('waybill_changes', whose);
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE OR REPLACE FUNCTION revisions_leave_with_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM all_jobs WHERE id = OLD.id) THEN
        DELETE FROM revisions WHERE job_id = OLD.id;
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER conversion_leaves_with_job
    AFTER DELETE ON shelved_jobs
    FOR EACH ROW WHEN (OLD.kind = 'convert_pdf')
    EXECUTE FUNCTION conversion_leaves_with_job()
""",
    """
CREATE TRIGGER revisions_leave_with_job
    AFTER DELETE ON shelved_jobs
    FOR EACH ROW WHEN (OLD.kind = 'convert_pdf')
    EXECUTE FUNCTION revisions_leave_with_job()
""",
)

# As in convert_0001, for all jobs: the pages and the janitor of release 0.1.0 read these.
VIEWS_OF_0_1_0 = (
    """
CREATE OR REPLACE VIEW conversion_details AS
SELECT conversions.job_id, conversions.owner, conversions.original_name, conversions.bytes, conversions.mapping,
       conversions.status, conversions.listed_at, conversions.reused_at, conversions.upload_key,
       conversions.upload_deleted_at, conversions.deleted_at, conversions.changed,
       GREATEST(jobs.updated_at, conversions.listed_at, conversions.changed_at) AS updated_at,
       jobs.state, jobs.attempts, jobs.max_attempts, jobs.run_at, jobs.progress, jobs.progress_message,
       jobs.cancel_requested_at, jobs.error_code, jobs.error_message, jobs.error_detail ->> 'findings' AS findings,
       jobs.created_at, jobs.started_at, jobs.finished_at, conversions.revision,
       conversions.upload_missing_at, jobs.pinned_at, jobs.tenant
  FROM conversions
  JOIN all_jobs AS jobs ON jobs.id = conversions.job_id
""",
    """
CREATE OR REPLACE VIEW retained AS
SELECT jobs.id AS job_id, jobs.tenant, jobs.kind, jobs.state, jobs.finished_at,
       jobs.state IN ('scheduled', 'queued', 'running') OR jobs.pinned_at IS NOT NULL OR tenants.hold_at IS NOT NULL
       OR EXISTS (SELECT FROM jobs AS parent
                   WHERE parent.id = jobs.parent_id AND parent.state IN ('scheduled', 'queued', 'running')) AS kept,
       GREATEST(jobs.finished_at, conversions.listed_at) AS ended_at,
       conversions.job_id IS NOT NULL AS converted, conversions.downloaded_at, conversions.upload_deleted_at,
       jobs.unique_scope, jobs.unique_until,
       tenants.pdf_ttl_days, tenants.xml_ttl_days, tenants.xml_on_download, tenants.events_ttl_days,
       tenants.jobs_ttl_days
  FROM all_jobs AS jobs
  LEFT JOIN conversions ON conversions.job_id = jobs.id
  LEFT JOIN tenants ON tenants.name = jobs.tenant
""",
)


def upgrade() -> None:
    execute(*LEAVES_WITH_JOB, *VIEWS_OF_0_1_0)
