"""Results that a person has to look at first

Revision: convert_0007, after convert_0006
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "convert_0007"
down_revision = "convert_0006"
branch_labels = None
depends_on = None

# `doubts` is written by the worker that converts, with the job's completion, and says what a person has to look at.
# Workers of release 0.1.0 write none, so their results are complete at once, as they always were. The new
# condition is checked under the lock, which takes about half a second for a million rows.
COLUMNS = """
ALTER TABLE conversions
    ADD COLUMN doubts jsonb,
    ADD COLUMN approved_at timestamptz,
    ADD COLUMN approved_by text,
    DROP CONSTRAINT conversions_status_known,
    ADD CONSTRAINT conversions_status_known CHECK (
        status IN ('queued', 'processing', 'complete', 'needs_review', 'expired', 'failed', 'cancelled')),
    ALTER COLUMN status SET (n_distinct = 7)
"""

# The mapping '' stands for all mappings of the tenant that have no row of their own.
THRESHOLDS = """
CREATE TABLE review_thresholds (
    tenant  text NOT NULL,
    mapping text NOT NULL,
    below   smallint NOT NULL,

    PRIMARY KEY (tenant, mapping),
    CONSTRAINT review_thresholds_percent CHECK (below >= 0 AND below <= 100)
)
"""

FUNCTIONS = (
    # As in convert_0005, but a result that is in doubt waits for a person.
    """
CREATE OR REPLACE FUNCTION conversion_follows_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    follower text;
BEGIN
    UPDATE conversions
       SET status = CASE NEW.state WHEN 'scheduled' THEN 'queued'
                                   WHEN 'running' THEN 'processing'
                                   WHEN 'succeeded' THEN
                                       CASE WHEN doubts IS NOT NULL AND approved_at IS NULL THEN 'needs_review'
                                            ELSE 'complete' END
                                   WHEN 'dead_letter' THEN 'failed'
                                   ELSE NEW.state END,
           changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = NEW.id
    RETURNING CASE WHEN listed_at IS NOT NULL THEN owner END INTO follower;
    IF follower IS NOT NULL THEN
        PERFORM waybill_tell(follower);
    END IF;
    RETURN NULL;
END $$
""",
    # As in convert_0005, but a tombstone does not keep what was in doubt, nor who approved it.
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
           doubts = NULL, approved_by = NULL, changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = OLD.id AND deleted_at IS NULL
    RETURNING owner INTO whose;
    IF FOUND THEN
        PERFORM waybill_tell(whose);
    END IF;
    RETURN NULL;
END $$
""",
)


def upgrade() -> None:
    execute(COLUMNS, THRESHOLDS, *FUNCTIONS)
