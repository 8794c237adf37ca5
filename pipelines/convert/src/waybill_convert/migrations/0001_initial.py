"""The convert pipeline's tables as release 0.1.0 has them: conversions, revisions, durations

Revision: convert_0001, the first
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "convert_0001"
down_revision = None
branch_labels = ("convert",)
depends_on = ("engine_0001",)

# `status` is the API's word for the job's state, kept here by the triggers below: lists and counts of an owner with
# a hundred thousand conversions then read one index and never the engine's table.
CONVERSIONS = """
CREATE TABLE conversions (
    job_id            uuid PRIMARY KEY,
    tenant            text NOT NULL,
    owner             text NOT NULL,
    original_name     text NOT NULL,
    bytes             bigint NOT NULL,
    sha256            text NOT NULL,
    mapping           text NOT NULL,
    pages             integer,
    upload_key        text NOT NULL,
    upload_deleted_at timestamptz,

    status            text NOT NULL DEFAULT 'queued',
    listed_at         timestamptz NOT NULL DEFAULT now(),
    reused_at         timestamptz,
    downloaded_at     timestamptz,
    deleted_at        timestamptz,
    changed           xid8 NOT NULL DEFAULT pg_current_xact_id(),
    changed_at        timestamptz NOT NULL DEFAULT now(),
    revision          integer NOT NULL DEFAULT 0,
    upload_missing_at timestamptz,

    CONSTRAINT conversions_status_known CHECK (
        status IN ('queued', 'processing', 'complete', 'expired', 'failed', 'cancelled'))
);
CREATE INDEX conversions_listed ON conversions (owner, listed_at DESC, job_id DESC) WHERE deleted_at IS NULL;
CREATE INDEX conversions_by_status ON conversions (owner, status, listed_at DESC, job_id DESC) WHERE deleted_at IS NULL;
-- Where all is complete, the planner would not believe that another status is worth an index of its own.
ALTER TABLE conversions ALTER COLUMN status SET (n_distinct = 6);
CREATE INDEX conversions_changed ON conversions (owner, changed, job_id);
CREATE INDEX conversions_same ON conversions (owner, sha256, mapping, bytes) WHERE deleted_at IS NULL
"""

# Each is what one retention rule looks through, and shrinks as the janitor works.
RETENTION_INDEXES = """
CREATE INDEX conversions_sources ON conversions (job_id) WHERE upload_deleted_at IS NULL;
CREATE INDEX conversions_downloaded ON conversions (job_id) WHERE downloaded_at IS NOT NULL AND status = 'complete';
CREATE INDEX conversions_gone ON conversions (job_id) WHERE deleted_at IS NOT NULL
"""

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
)
"""

DURATIONS = """
CREATE TABLE durations (
    kind       text NOT NULL,
    size       smallint NOT NULL,
    samples    integer NOT NULL,
    low        real NOT NULL,
    median     real NOT NULL,
    high       real NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (kind, size)
)
"""

# Whoever moves a job (a worker, a rescue, a person with the command line) thereby changes its conversion: no code of
# the engine knows of it, and jobs of other kinds pay for nothing but the WHEN.
FOLLOWS_JOB = (
    """
CREATE FUNCTION conversion_follows_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose text;
BEGIN
    UPDATE conversions
       SET status = CASE NEW.state WHEN 'scheduled' THEN 'queued'
                                   WHEN 'running' THEN 'processing'
                                   WHEN 'succeeded' THEN 'complete'
                                   WHEN 'dead_letter' THEN 'failed'
                                   ELSE NEW.state END,
           changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = NEW.id
    RETURNING owner INTO whose;
    IF FOUND THEN
        PERFORM pg_notify('waybill_changes', whose);
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER conversion_follows_job
    AFTER UPDATE OF state, progress, progress_message, error_code, cancel_requested_at, run_at ON jobs
    FOR EACH ROW WHEN (NEW.kind = 'convert_pdf')
    EXECUTE FUNCTION conversion_follows_job()
""",
    # The row stays for a while, emptied of what was personal: whoever follows the list must hear that it is gone.
    """
CREATE FUNCTION conversion_leaves_with_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose text;
BEGIN
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
CREATE TRIGGER conversion_leaves_with_job
    AFTER DELETE ON jobs
    FOR EACH ROW WHEN (OLD.kind = 'convert_pdf')
    EXECUTE FUNCTION conversion_leaves_with_job()
""",
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
    # Revisions hold what stands in the document: they go with its job, whoever removes it (`waybill jobs purge`, too).
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

# Whoever stops naming a stored object thereby hands it to the janitor, in the same transaction. With a document go the
# pictures of its pages.
BECOMES_GARBAGE = (
    """
CREATE FUNCTION revisions_become_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO garbage (key, since)
    SELECT unnest(ARRAY[xml_key, record_key]), now() FROM removed ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER revisions_become_garbage
    AFTER DELETE ON revisions REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION revisions_become_garbage()
""",
    """
CREATE FUNCTION upload_becomes_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO garbage (key, since)
    VALUES (OLD.upload_key, now()), (regexp_replace(OLD.upload_key, '^uploads/(.*)[.]pdf$', 'pages/\\1/'), now())
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER upload_becomes_garbage
    AFTER UPDATE OF upload_deleted_at ON conversions
    FOR EACH ROW WHEN (OLD.upload_deleted_at IS NULL AND NEW.upload_deleted_at IS NOT NULL)
    EXECUTE FUNCTION upload_becomes_garbage()
""",
    """
CREATE TRIGGER upload_becomes_garbage_with_its_row
    AFTER DELETE ON conversions
    FOR EACH ROW WHEN (OLD.upload_deleted_at IS NULL)
    EXECUTE FUNCTION upload_becomes_garbage()
""",
)

# Read by processes of release 0.1.0 only, and dropped with the next release: this one reads
# `waybill_convert.repository.listing` and the engine's view `job_retention`.
VIEWS_OF_0_1_0 = (
    """
CREATE VIEW conversion_details AS
SELECT conversions.job_id, conversions.owner, conversions.original_name, conversions.bytes, conversions.mapping,
       conversions.status, conversions.listed_at, conversions.reused_at, conversions.upload_key,
       conversions.upload_deleted_at, conversions.deleted_at, conversions.changed,
       GREATEST(jobs.updated_at, conversions.listed_at, conversions.changed_at) AS updated_at,
       jobs.state, jobs.attempts, jobs.max_attempts, jobs.run_at, jobs.progress, jobs.progress_message,
       jobs.cancel_requested_at, jobs.error_code, jobs.error_message, jobs.error_detail ->> 'findings' AS findings,
       jobs.created_at, jobs.started_at, jobs.finished_at, conversions.revision,
       conversions.upload_missing_at, jobs.pinned_at, jobs.tenant
  FROM conversions
  JOIN jobs ON jobs.id = conversions.job_id
""",
    """
CREATE VIEW retained AS
SELECT jobs.id AS job_id, jobs.tenant, jobs.kind, jobs.state, jobs.finished_at,
       jobs.state IN ('scheduled', 'queued', 'running') OR jobs.pinned_at IS NOT NULL OR tenants.hold_at IS NOT NULL
       OR EXISTS (SELECT FROM jobs AS parent
                   WHERE parent.id = jobs.parent_id AND parent.state IN ('scheduled', 'queued', 'running')) AS kept,
       GREATEST(jobs.finished_at, conversions.listed_at) AS ended_at,
       conversions.job_id IS NOT NULL AS converted, conversions.downloaded_at, conversions.upload_deleted_at,
       jobs.unique_scope, jobs.unique_until,
       tenants.pdf_ttl_days, tenants.xml_ttl_days, tenants.xml_on_download, tenants.events_ttl_days,
       tenants.jobs_ttl_days
  FROM jobs
  LEFT JOIN conversions ON conversions.job_id = jobs.id
  LEFT JOIN tenants ON tenants.name = jobs.tenant
""",
)


def upgrade() -> None:
    execute(CONVERSIONS, RETENTION_INDEXES, REVISIONS, DURATIONS, *FOLLOWS_JOB, *BECOMES_GARBAGE, *VIEWS_OF_0_1_0)
