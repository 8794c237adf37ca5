"""Conversions that did not come in as an upload: somebody enqueued `convert_pdf` by its name

Revision: convert_0002, after convert_0001
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "convert_0002"
down_revision = "convert_0001"
branch_labels = None
depends_on = None

# A conversion of another job's family is in no list: it has no place there (`listed_at`), and followers of the list do
# not hear of it (`changed`). NULLs keep it out of the ranges that lists read from their indexes, those of release 0.1.0
# included. A borrowed document belongs to whoever enqueued the job.
COLUMNS = """
ALTER TABLE conversions
    ADD COLUMN upload_borrowed boolean NOT NULL DEFAULT false,
    ALTER COLUMN listed_at DROP NOT NULL,
    ALTER COLUMN changed DROP NOT NULL
"""

# Here and not in each statement that marks a change, because processes of release 0.1.0 mark changes, too.
UNLISTED = (
    """
CREATE FUNCTION unlisted_is_not_followed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed := NULL;
    RETURN NEW;
END $$
""",
    """
CREATE TRIGGER unlisted_is_not_followed
    BEFORE INSERT OR UPDATE ON conversions
    FOR EACH ROW WHEN (NEW.listed_at IS NULL AND NEW.changed IS NOT NULL)
    EXECUTE FUNCTION unlisted_is_not_followed()
""",
)

# As in convert_0001, but nobody is woken for what is in no list: a batch of 100,000 files would wake its owner's pages
# several times for each.
FOLLOWS_JOB = """
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
        PERFORM pg_notify('waybill_changes', follower);
    END IF;
    RETURN NULL;
END $$
"""

# As in convert_0001, but what was in no list leaves no tombstone: nobody needs to hear that it is gone.
LEAVES_WITH_JOB = """
CREATE OR REPLACE FUNCTION conversion_leaves_with_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose text;
BEGIN
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
"""

# Whoever hands a job over hands over its conversion: a pipeline knows its jobs, and not what others know of them.
FOLLOWS_OWNER = (
    """
CREATE FUNCTION conversion_follows_owner() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    listed boolean;
BEGIN
    UPDATE conversions
       SET owner = NEW.owner, changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = NEW.id AND owner <> NEW.owner
    RETURNING listed_at IS NOT NULL INTO listed;
    IF listed THEN
        PERFORM pg_notify('waybill_changes', OLD.owner), pg_notify('waybill_changes', NEW.owner);
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER conversion_follows_owner
    AFTER UPDATE OF owner ON jobs
    FOR EACH ROW WHEN (NEW.kind = 'convert_pdf' AND OLD.owner <> NEW.owner)
    EXECUTE FUNCTION conversion_follows_owner()
""",
)

# As in convert_0001, but a borrowed document is left to its owner, and only the pictures of its pages go. They lie
# below the job's id and the day that is in its first 48 bits, as `stored_files.pages_of` says.
BECOMES_GARBAGE = r"""
CREATE OR REPLACE FUNCTION upload_becomes_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    made_at timestamp := to_timestamp(
        ('x' || left(replace(OLD.job_id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) AT TIME ZONE 'UTC';
BEGIN
    IF OLD.upload_borrowed THEN
        INSERT INTO garbage (key, since)
        VALUES (format('pages/%s/%s/', to_char(made_at, 'YY/MM/DD'), OLD.job_id), now())
        ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO garbage (key, since)
        VALUES (OLD.upload_key, now()), (regexp_replace(OLD.upload_key, '^uploads/(.*)[.]pdf$', 'pages/\1/'), now())
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    execute(COLUMNS, *UNLISTED, FOLLOWS_JOB, LEAVES_WITH_JOB, *FOLLOWS_OWNER, BECOMES_GARBAGE)
