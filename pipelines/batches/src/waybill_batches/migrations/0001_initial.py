"""Batches and their files

Revision: batches_0001, the first
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "batches_0001"
down_revision = None
branch_labels = ("batches",)
depends_on = ("engine_0021",)

# `id` is the first run's `summarize_run` job, `run_job` that of the present run. While a batch is active its row is
# left alone, so that workers that finish files never wait for each other: counts are taken from the files, and written
# here at the end.
BATCHES = """
CREATE TABLE batches (
    id                uuid PRIMARY KEY,
    tenant            text NOT NULL,
    owner             text NOT NULL,
    name              text NOT NULL,
    source_name       text NOT NULL,
    bytes             bigint NOT NULL,
    sha256            text NOT NULL,
    rules             jsonb NOT NULL,
    wanted            jsonb,
    fingerprint       text NOT NULL,
    source_key        text NOT NULL,
    source_deleted_at timestamptz,

    status            text NOT NULL DEFAULT 'queued',
    run               integer NOT NULL DEFAULT 1,
    run_job           uuid NOT NULL,
    all_runs          uuid[] NOT NULL,
    error             jsonb,
    counts            jsonb,
    summary           jsonb,
    created_at        timestamptz NOT NULL DEFAULT now(),
    unpacked_at       timestamptz,
    finished_at       timestamptz,
    changed           xid8 NOT NULL DEFAULT pg_current_xact_id(),
    changed_at        timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT batches_status_known CHECK (
        status IN ('queued', 'processing', 'complete', 'complete_with_errors', 'failed', 'cancelled', 'expired'))
);
CREATE INDEX batches_listed ON batches (owner, id DESC);
CREATE INDEX batches_changed ON batches (owner, changed);
CREATE INDEX batches_same ON batches (owner, fingerprint);
CREATE INDEX batches_run_job ON batches (run_job)
"""

# A file that is the same as an earlier one of its batch is its twin (`twin_of`): it has no job of its own, and ends
# with the other.
FILES = """
CREATE TABLE batch_files (
    batch_id     uuid NOT NULL REFERENCES batches ON DELETE CASCADE,
    number       integer NOT NULL,
    owner        text NOT NULL,
    doc_id       text NOT NULL,
    path         text NOT NULL,
    type         text NOT NULL,
    bytes        bigint NOT NULL,
    sha256       text NOT NULL,
    mapping      text,
    twin_of      integer,

    status       text NOT NULL,
    job_id       uuid,
    error        jsonb,
    tries        integer NOT NULL DEFAULT 0,
    milliseconds real,
    finished_at  timestamptz,
    reused       boolean NOT NULL DEFAULT false,
    amounts      jsonb,

    source_key   text,
    source_at    bigint,
    extractor    text,
    result_key   text,
    result_at    bigint,
    result_bytes bigint,
    xml_key      text,
    xml_bytes    bigint,

    PRIMARY KEY (batch_id, number),
    CONSTRAINT batch_files_status_known CHECK (
        status IN ('queued', 'complete', 'needs_review', 'failed', 'cancelled', 'expired'))
);
CREATE INDEX batch_files_by_status ON batch_files (batch_id, status, number);
CREATE INDEX batch_files_by_doc ON batch_files (batch_id, doc_id);
CREATE INDEX batch_files_of_job ON batch_files (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX batch_files_twins ON batch_files (batch_id, twin_of) WHERE twin_of IS NOT NULL;
CREATE INDEX batch_files_same ON batch_files (owner, sha256) WHERE extractor IS NOT NULL
"""

# Whoever stops naming the ZIP thereby hands it to the janitor, in the same transaction.
BECOMES_GARBAGE = (
    """
CREATE FUNCTION batch_source_becomes_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO garbage (key, since) VALUES (OLD.source_key, now()) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER batch_source_becomes_garbage
    AFTER UPDATE OF source_deleted_at ON batches
    FOR EACH ROW WHEN (OLD.source_deleted_at IS NULL AND NEW.source_deleted_at IS NOT NULL)
    EXECUTE FUNCTION batch_source_becomes_garbage()
""",
    """
CREATE TRIGGER batch_source_becomes_garbage_with_its_row
    AFTER DELETE ON batches
    FOR EACH ROW WHEN (OLD.source_deleted_at IS NULL)
    EXECUTE FUNCTION batch_source_becomes_garbage()
""",
)

# A batch goes with the last of the jobs that summed it up, whoever removes them; one that went to the shelf is not
# gone. So an operator who removes what ended long ago does not take a batch away that is being retried.
LEAVES_WITH_JOB = (
    """
CREATE FUNCTION batch_leaves_with_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose text;
BEGIN
    DELETE FROM batches
     WHERE id = (OLD.payload ->> 'batch')::uuid
       AND NOT EXISTS (SELECT FROM all_jobs WHERE all_jobs.id = ANY (all_runs))
    RETURNING owner INTO whose;
    IF FOUND THEN
        PERFORM waybill_tell(whose);
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER batch_leaves_with_job
    AFTER DELETE ON jobs
    FOR EACH ROW WHEN (OLD.kind = 'summarize_run')
    EXECUTE FUNCTION batch_leaves_with_job()
""",
    """
CREATE TRIGGER batch_leaves_with_job
    AFTER DELETE ON shelved_jobs
    FOR EACH ROW WHEN (OLD.kind = 'summarize_run')
    EXECUTE FUNCTION batch_leaves_with_job()
""",
)

# What a job published goes with it, whoever removes it; its files cannot be complete without.
RESULTS_LEAVE_WITH_JOB = (
    """
CREATE FUNCTION batch_results_leave_with_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    removed   uuid[];
    concerned uuid[];
BEGIN
    -- Those that went to the shelf, or came back from it, are there still.
    SELECT array_agg(id) INTO removed
      FROM gone
     WHERE kind IN ('extract_file', 'enrich_file', 'convert_pdf')
       AND NOT EXISTS (SELECT FROM all_jobs WHERE all_jobs.id = gone.id);
    IF removed IS NULL THEN
        RETURN NULL;
    END IF;
    WITH lost AS (
        UPDATE batch_files SET status = 'expired', extractor = NULL, result_key = NULL, xml_key = NULL
         WHERE job_id = ANY (removed) AND status IN ('complete', 'needs_review')
        RETURNING batch_id
    )
    SELECT array_agg(DISTINCT batch_id) INTO concerned FROM lost;
    IF concerned IS NOT NULL THEN
        UPDATE batches
           SET counts = (SELECT jsonb_object_agg(status, number) || jsonb_build_object('files', sum(number))
                           FROM (SELECT status, count(*) AS number FROM batch_files
                                  WHERE batch_id = batches.id GROUP BY status) AS counted),
               changed = pg_current_xact_id(), changed_at = now()
         WHERE id = ANY (concerned) AND status NOT IN ('queued', 'processing');
    END IF;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER batch_results_leave_with_job
    AFTER DELETE ON jobs REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION batch_results_leave_with_job()
""",
    """
CREATE TRIGGER batch_results_leave_with_job
    AFTER DELETE ON shelved_jobs REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION batch_results_leave_with_job()
""",
)


def upgrade() -> None:
    execute(BATCHES, FILES, *BECOMES_GARBAGE, *LEAVES_WITH_JOB, *RESULTS_LEAVE_WITH_JOB)
