"""Convert: what is known of each document, who may ask for it, and how changes become known

Revision: 0006, after 0005
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

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

# What an owner sees of a conversion. The engine's table is joined by its primary key, for the rows of one page only.
DETAILS = """
CREATE VIEW conversion_details AS
SELECT conversions.job_id, conversions.owner, conversions.original_name, conversions.bytes, conversions.mapping,
       conversions.status, conversions.listed_at, conversions.reused_at, conversions.upload_key,
       conversions.upload_deleted_at, conversions.deleted_at, conversions.changed,
       GREATEST(jobs.updated_at, conversions.listed_at) AS updated_at,
       jobs.state, jobs.attempts, jobs.max_attempts, jobs.run_at, jobs.progress, jobs.progress_message,
       jobs.cancel_requested_at, jobs.error_code, jobs.error_message, jobs.error_detail ->> 'findings' AS findings,
       jobs.created_at, jobs.started_at, jobs.finished_at
  FROM conversions
  JOIN jobs ON jobs.id = conversions.job_id
"""

# Whoever moves a job (a worker, a rescue, a person with the command line) thereby changes its conversion: no code of
# the engine knows of it, and jobs of other kinds pay for nothing but the WHEN.
CHANGES = (
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
       SET deleted_at = now(), original_name = '', sha256 = '',
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
)

SECURITY = """
CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    tenant       text NOT NULL,
    name         text NOT NULL,
    hash         bytea NOT NULL,
    hint         text NOT NULL,
    permissions  text[] NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);
CREATE TABLE secrets (
    name       text PRIMARY KEY,
    value      bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE rate_limits (
    subject text PRIMARY KEY,
    tat     timestamptz NOT NULL
)
"""


def upgrade() -> None:
    for script in (CONVERSIONS, SECURITY):
        for statement in script.split(";"):
            op.execute(statement)
    for statement in (DETAILS, *CHANGES):
        op.execute(statement)
