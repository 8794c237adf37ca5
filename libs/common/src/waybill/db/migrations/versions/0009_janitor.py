"""The janitor: what is kept for how long, what no row names any more, and what was done about it

Revision: 0009, after 0008
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# No defaults: no row is rewritten.
COLUMNS = """
ALTER TABLE jobs ADD COLUMN pinned_at timestamptz;
ALTER TABLE job_artefacts ADD COLUMN missing_at timestamptz;
ALTER TABLE conversions ADD COLUMN upload_missing_at timestamptz;
ALTER TABLE tenants
    ADD COLUMN hold_at timestamptz,
    ADD COLUMN hold_reason text,
    ADD COLUMN pdf_ttl_days real,
    ADD COLUMN xml_ttl_days real,
    ADD COLUMN xml_on_download boolean,
    ADD COLUMN events_ttl_days real,
    ADD COLUMN jobs_ttl_days real
"""

# Each is what one task of the janitor looks through, and shrinks as it works.
INDEXES = """
CREATE INDEX conversions_sources ON conversions (job_id) WHERE upload_deleted_at IS NULL;
CREATE INDEX conversions_downloaded ON conversions (job_id) WHERE downloaded_at IS NOT NULL AND status = 'complete';
CREATE INDEX conversions_gone ON conversions (job_id) WHERE deleted_at IS NOT NULL
"""

GARBAGE = """
CREATE TABLE garbage (
    key   text PRIMARY KEY,
    since timestamptz NOT NULL
)
"""

# Whoever stops naming a stored object (retention, a deletion, a purge, an erasure) thereby hands it to the janitor: it
# cannot be forgotten, and it commits with the rest or not at all. With a document go the pictures of its pages.
BECOMES_GARBAGE = (
    """
CREATE FUNCTION artefacts_become_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO garbage (key, since) SELECT storage_key, now() FROM removed ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER artefacts_become_garbage
    AFTER DELETE ON job_artefacts REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION artefacts_become_garbage()
""",
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
CREATE FUNCTION replaced_artefact_becomes_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO garbage (key, since) VALUES (OLD.storage_key, now()) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER replaced_artefact_becomes_garbage
    AFTER UPDATE OF storage_key ON job_artefacts
    FOR EACH ROW WHEN (OLD.storage_key <> NEW.storage_key)
    EXECUTE FUNCTION replaced_artefact_becomes_garbage()
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
    """
CREATE OR REPLACE FUNCTION conversion_leaves_with_job() RETURNS trigger LANGUAGE plpgsql AS $$
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
    # Jobs that went before had nobody to hand their document to.
    "UPDATE conversions SET upload_deleted_at = deleted_at WHERE deleted_at IS NOT NULL AND upload_deleted_at IS NULL",
)

DETAILS = """
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
  JOIN jobs ON jobs.id = conversions.job_id
"""

# The one truth about keeping: whoever removes what belongs to a job asks here. A job's limits count from `ended_at`:
# its end, or when its document was last uploaded again.
RETAINED = """
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
"""

JANITOR = """
CREATE TABLE janitor_lease (
    name       text PRIMARY KEY,
    token      bigint NOT NULL,
    holder     text NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE TABLE janitor_runs (
    id          uuid PRIMARY KEY,
    holder      text NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz,
    outcome     text NOT NULL,
    CONSTRAINT janitor_runs_outcome_known CHECK (outcome IN ('running', 'done', 'unfinished', 'failed', 'died'))
);
CREATE TABLE janitor_tasks (
    run_id      uuid NOT NULL,
    task        text NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz,
    outcome     text NOT NULL,
    done        jsonb NOT NULL,
    found       jsonb NOT NULL,
    error       text,
    PRIMARY KEY (run_id, task),
    CONSTRAINT janitor_tasks_outcome_known CHECK (outcome IN ('running', 'done', 'unfinished', 'failed', 'died'))
);
CREATE TABLE janitor_totals (
    task   text NOT NULL,
    figure text NOT NULL,
    total  bigint NOT NULL,
    PRIMARY KEY (task, figure)
);
CREATE TABLE janitor_places (
    task  text PRIMARY KEY,
    place text NOT NULL
);
CREATE TABLE erasures (
    id           uuid PRIMARY KEY,
    tenant       text,
    owner        text,
    requested_at timestamptz NOT NULL,
    finished_at  timestamptz,
    jobs         bigint NOT NULL DEFAULT 0,
    files        bigint NOT NULL DEFAULT 0,
    CONSTRAINT erasures_of_somebody CHECK ((tenant IS NULL) <> (owner IS NULL))
);
CREATE INDEX erasures_open ON erasures (id) WHERE finished_at IS NULL;
CREATE TABLE durations (
    kind       text NOT NULL,
    size       smallint NOT NULL,
    samples    integer NOT NULL,
    low        real NOT NULL,
    median     real NOT NULL,
    high       real NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (kind, size)
);
CREATE TABLE storage_copies (
    place     text NOT NULL,
    key       text NOT NULL,
    bytes     bigint NOT NULL,
    sha256    text NOT NULL,
    copied_at timestamptz NOT NULL,
    PRIMARY KEY (place, key)
)
"""


def upgrade() -> None:
    for script in (COLUMNS, INDEXES, GARBAGE, JANITOR):
        for statement in script.split(";"):
            op.execute(statement)
    for statement in (*BECOMES_GARBAGE, DETAILS, RETAINED):
        op.execute(statement)
