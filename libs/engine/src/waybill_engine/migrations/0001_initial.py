"""The engine's tables as release 0.1.0 has them: jobs, their history and artefacts, workers, rules, schedules, breakers

Revision: engine_0001, the first
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0001"
down_revision = None
branch_labels = ("engine",)
depends_on = ("platform_0001",)

JOBS = """
CREATE TABLE jobs (
    id                  uuid PRIMARY KEY,
    tenant              text NOT NULL,
    owner               text NOT NULL,
    kind                text NOT NULL,
    queue               text NOT NULL,
    priority            smallint NOT NULL DEFAULT 0,
    cost                bigint NOT NULL DEFAULT 1,
    state               text NOT NULL,
    payload             jsonb NOT NULL,

    attempts            smallint NOT NULL DEFAULT 0,
    max_attempts        smallint NOT NULL DEFAULT 1,
    crashes             smallint NOT NULL DEFAULT 0,
    max_crashes         smallint NOT NULL DEFAULT 3,
    isolate             boolean NOT NULL DEFAULT false,
    run_at              timestamptz NOT NULL DEFAULT now(),
    time_limit          real NOT NULL,

    lease_owner         uuid,
    lease_token         integer NOT NULL DEFAULT 0,
    cancel_requested_at timestamptz,
    progress            real,
    progress_message    text,

    error_code          text,
    error_message       text,
    error_detail        jsonb,

    unique_key          text,
    unique_scope        text,
    unique_until        timestamptz,
    parent_id           uuid,
    pending_children    integer NOT NULL DEFAULT 0,
    traceparent         text,

    created_at          timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now(),
    started_at          timestamptz,
    finished_at         timestamptz,
    children            integer NOT NULL DEFAULT 0,
    awaited             boolean NOT NULL DEFAULT false,
    pinned_at           timestamptz,

    CONSTRAINT jobs_state_known CHECK (
        state IN ('scheduled', 'queued', 'running', 'succeeded', 'failed', 'dead_letter', 'cancelled')),
    CONSTRAINT jobs_running_is_leased CHECK ((state = 'running') = (lease_owner IS NOT NULL)),
    CONSTRAINT jobs_unique_scope_known CHECK (unique_scope IN ('active', 'window', 'forever'))
)
-- Rows live fast here: vacuum by thousands of rows, not by a fifth of the table.
WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
      autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)
"""

# Each index is one statement's working set and holds nothing else; see `waybill_engine.models`. A lane is queue, kind,
# suspects or not, priority and tenant; in it, the oldest job comes first.
JOB_INDEXES = """
CREATE INDEX jobs_lanes ON jobs (queue, kind, isolate, priority DESC, tenant, id) WHERE state = 'queued';
CREATE INDEX jobs_scheduled ON jobs (run_at) WHERE state = 'scheduled';
CREATE INDEX jobs_held ON jobs (lease_owner, kind, tenant) WHERE lease_owner IS NOT NULL;
CREATE INDEX jobs_dead_letter ON jobs (id) WHERE state = 'dead_letter';
CREATE UNIQUE INDEX jobs_unique_while_active ON jobs (tenant, kind, unique_key)
    WHERE unique_scope = 'active' AND state IN ('scheduled', 'queued', 'running');
CREATE UNIQUE INDEX jobs_unique_kept ON jobs (tenant, kind, unique_key) WHERE unique_scope IN ('window', 'forever');
CREATE INDEX jobs_children ON jobs (parent_id) WHERE parent_id IS NOT NULL
"""

# There is no foreign key to jobs: it would lock the job's row for every event. Whoever deletes a job deletes these too.
HISTORY = """
CREATE TABLE job_events (
    job_id      uuid NOT NULL,
    id          bigint GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL DEFAULT now(),
    event       text NOT NULL,
    lease_token integer,
    worker_id   uuid,
    started_at  timestamptz,
    detail      jsonb,
    PRIMARY KEY (job_id, id)
);
CREATE TABLE job_artefacts (
    job_id      uuid NOT NULL,
    name        text NOT NULL,
    storage_key text NOT NULL,
    media_type  text NOT NULL,
    bytes       bigint NOT NULL,
    sha256      text NOT NULL,
    lease_token integer NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    missing_at  timestamptz,
    PRIMARY KEY (job_id, name)
)
"""

# Whoever stops naming a stored object (retention, a deletion, a purge, an erasure) thereby hands it to the janitor: it
# cannot be forgotten, and it commits with the rest or not at all.
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
)

WORKERS = """
CREATE TABLE workers (
    id               uuid PRIMARY KEY,
    name             text NOT NULL,
    host             text NOT NULL,
    pid              integer NOT NULL,
    pod_namespace    text,
    pod_name         text,
    pod_uid          text,
    version          text NOT NULL,
    queues           text[] NOT NULL,
    kinds            text[] NOT NULL,
    concurrency      integer NOT NULL,
    isolating        boolean NOT NULL DEFAULT false,
    state            text NOT NULL,
    started_at       timestamptz NOT NULL DEFAULT now(),
    last_seen_at     timestamptz NOT NULL DEFAULT now(),
    lease_expires_at timestamptz NOT NULL DEFAULT now(),
    stopped_at       timestamptz,
    CONSTRAINT workers_state_known CHECK (state IN ('active', 'draining', 'stopped', 'gone'))
)
-- Room on the page for the next heartbeat's row version.
WITH (fillfactor = 50);
CREATE INDEX workers_live ON workers (id) WHERE state IN ('active', 'draining')
"""

# A decided cap outlives the cap itself: one that was lifted by hand is not put back by a default.
RULES = """
CREATE TABLE queues (
    name          text PRIMARY KEY,
    paused_at     timestamptz,
    paused_reason text
);
CREATE TABLE caps (
    id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text,
    kind   text,
    most   integer NOT NULL,
    CONSTRAINT caps_of_somebody UNIQUE NULLS NOT DISTINCT (tenant, kind),
    CONSTRAINT caps_name_somebody CHECK (tenant IS NOT NULL OR kind IS NOT NULL),
    CONSTRAINT caps_most_counts CHECK (most >= 0)
);
CREATE TABLE decided_caps (
    kind text PRIMARY KEY
)
"""

SCHEDULES = """
CREATE TABLE schedules (
    name          text PRIMARY KEY,
    cron          text NOT NULL,
    timezone      text NOT NULL,
    missed        text NOT NULL,
    grace         real NOT NULL,

    kind          text NOT NULL,
    queue         text NOT NULL,
    tenant        text NOT NULL,
    payload       jsonb NOT NULL,
    priority      smallint NOT NULL DEFAULT 0,
    cost          bigint NOT NULL DEFAULT 1,
    max_attempts  smallint NOT NULL,
    max_crashes   smallint NOT NULL,
    time_limit    real NOT NULL,

    paused_at     timestamptz,
    paused_reason text,
    next_at       timestamptz,
    last_tick     timestamptz,
    last_job_id   uuid,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT schedules_missed_known CHECK (missed IN ('skip', 'once', 'all'))
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE paused_at IS NULL
"""

# `breaker_counts` has a few rows per dependency that are rewritten every second: their page needs room for that.
BREAKERS = """
CREATE TABLE kinds (
    name       text PRIMARY KEY,
    dependency text
);
CREATE TABLE breakers (
    name         text PRIMARY KEY,
    state        text NOT NULL,
    since        timestamptz NOT NULL DEFAULT now(),
    open_until   timestamptz,
    open_seconds real NOT NULL DEFAULT 0,
    successes    integer NOT NULL DEFAULT 0,
    counted_from timestamptz NOT NULL DEFAULT 'epoch',
    reason       text,
    CONSTRAINT breakers_state_known CHECK (state IN ('closed', 'open', 'half_open')),
    CONSTRAINT breakers_until_only_open CHECK (open_until IS NULL OR state = 'open')
);
CREATE TABLE breaker_counts (
    name     text NOT NULL,
    bucket   timestamptz NOT NULL,
    calls    integer NOT NULL,
    failures integer NOT NULL,
    PRIMARY KEY (name, bucket)
) WITH (fillfactor = 50);
CREATE TABLE breaker_events (
    name   text NOT NULL,
    id     bigint GENERATED ALWAYS AS IDENTITY,
    at     timestamptz NOT NULL DEFAULT now(),
    event  text NOT NULL,
    detail jsonb NOT NULL,
    PRIMARY KEY (name, id)
)
"""

ERASURES = """
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
CREATE INDEX erasures_open ON erasures (id) WHERE finished_at IS NULL
"""


def upgrade() -> None:
    execute(JOBS, JOB_INDEXES, HISTORY, *BECOMES_GARBAGE, WORKERS, RULES, SCHEDULES, BREAKERS, ERASURES)
