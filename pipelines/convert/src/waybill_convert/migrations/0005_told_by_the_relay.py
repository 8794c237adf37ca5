"""What happens to a conversion is told through the relay while many announce something at once

Revision: convert_0005, after convert_0004
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "convert_0005"
down_revision = "convert_0004"
branch_labels = None
depends_on = ("engine_0014",)

# As in convert_0002 and convert_0004. A NOTIFY in each transition made all of them commit one at a time.
FUNCTIONS = (
    """
CREATE OR REPLACE FUNCTION conversion_follows_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    follower text;
BEGIN
    UPDATE conversions
       SET status = CASE NEW.state WHEN 'scheduled' THEN 'queued'
                                   WHEN 'running' THEN 'processing'
                                   WHEN 'succeeded' THEN 'complete'
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
        PERFORM waybill_tell(whose);
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE OR REPLACE FUNCTION conversion_follows_owner() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    listed boolean;
BEGIN
    UPDATE conversions
       SET owner = NEW.owner, changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = NEW.id AND owner <> NEW.owner
    RETURNING listed_at IS NOT NULL INTO listed;
    IF listed THEN
        PERFORM waybill_tell(OLD.owner), waybill_tell(NEW.owner);
    END IF;
    RETURN NULL;
END $$
""",
)


def upgrade() -> None:
    execute(*FUNCTIONS)
