"""Convert: what people corrected, revision by revision

Revision: 0007, after 0006
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Revision 0 is what was read, and is no row here: its files are the job's artefacts.
REVISIONS = """
CREATE TABLE revisions (
    job_id        uuid NOT NULL,
    number        integer NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    author        text NOT NULL,
    changes       jsonb NOT NULL,
    accepted      jsonb,
    xml_key       text NOT NULL,
    xml_bytes     bigint NOT NULL,
    xml_sha256    text NOT NULL,
    record_key    text NOT NULL,
    record_bytes  bigint NOT NULL,
    record_sha256 text NOT NULL,

    PRIMARY KEY (job_id, number),
    CONSTRAINT revisions_counted CHECK (number >= 1)
);
ALTER TABLE conversions ADD COLUMN revision integer NOT NULL DEFAULT 0
"""

# As in 0006, with the number of the latest revision at the end; a saved revision moves `updated_at`, too.
DETAILS = """
CREATE OR REPLACE VIEW conversion_details AS
SELECT conversions.job_id, conversions.owner, conversions.original_name, conversions.bytes, conversions.mapping,
       conversions.status, conversions.listed_at, conversions.reused_at, conversions.upload_key,
       conversions.upload_deleted_at, conversions.deleted_at, conversions.changed,
       GREATEST(jobs.updated_at, conversions.listed_at, conversions.changed_at) AS updated_at,
       jobs.state, jobs.attempts, jobs.max_attempts, jobs.run_at, jobs.progress, jobs.progress_message,
       jobs.cancel_requested_at, jobs.error_code, jobs.error_message, jobs.error_detail ->> 'findings' AS findings,
       jobs.created_at, jobs.started_at, jobs.finished_at, conversions.revision
  FROM conversions
  JOIN jobs ON jobs.id = conversions.job_id
"""

RULES = (
    # What a person has made right stays complete, whatever becomes of another run of its job (`waybill jobs retry`).
    """
CREATE FUNCTION corrected_stays_complete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.status := 'complete';
    RETURN NEW;
END $$
""",
    """
CREATE TRIGGER corrected_stays_complete
    BEFORE UPDATE OF status ON conversions
    FOR EACH ROW WHEN (NEW.revision > 0 AND NEW.status IN ('failed', 'cancelled'))
    EXECUTE FUNCTION corrected_stays_complete()
""",
    # Changes hold what stands in the document: they go with its job, whoever removes it (`waybill jobs purge`, too).
    """
CREATE FUNCTION revisions_leave_with_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM revisions WHERE job_id = OLD.id;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER revisions_leave_with_job
    AFTER DELETE ON jobs
    FOR EACH ROW WHEN (OLD.kind = 'convert_pdf')
    EXECUTE FUNCTION revisions_leave_with_job()
""",
)


def upgrade() -> None:
    for statement in REVISIONS.split(";"):
        op.execute(statement)
    for statement in (DETAILS, *RULES):
        op.execute(statement)
