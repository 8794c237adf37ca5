"""The engine's tables: jobs, their history and artefacts, queues, workers, idempotency keys

Revision: 0001, the first
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

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

    CONSTRAINT jobs_state_known CHECK (
        state IN ('scheduled', 'queued', 'running', 'succeeded', 'failed', 'dead_letter', 'cancelled')),
    CONSTRAINT jobs_running_is_leased CHECK ((state = 'running') = (lease_owner IS NOT NULL)),
    CONSTRAINT jobs_unique_scope_known CHECK (unique_scope IN ('active', 'window', 'forever'))
)
-- Rows live fast here: vacuum by thousands of rows, not by a fifth of the table.
WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
      autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)
"""

# Each index is one statement's working set and holds nothing else; see waybill_engine.models.
INDEXES = """
CREATE INDEX jobs_ready ON jobs (queue, kind, priority DESC, id) WHERE state = 'queued' AND NOT isolate;
CREATE INDEX jobs_isolated ON jobs (queue, kind, id) WHERE state = 'queued' AND isolate;
CREATE INDEX jobs_scheduled ON jobs (run_at) WHERE state = 'scheduled';
CREATE INDEX jobs_leased ON jobs (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX jobs_dead_letter ON jobs (id) WHERE state = 'dead_letter';
CREATE UNIQUE INDEX jobs_unique_while_active ON jobs (tenant, kind, unique_key)
    WHERE unique_scope = 'active' AND state IN ('scheduled', 'queued', 'running');
CREATE UNIQUE INDEX jobs_unique_kept ON jobs (tenant, kind, unique_key) WHERE unique_scope IN ('window', 'forever');
CREATE INDEX jobs_children ON jobs (parent_id) WHERE parent_id IS NOT NULL
"""

# No foreign key to jobs: it would lock the job's row for every event. Purging removes both.
EVENTS = """
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
)
"""

ARTEFACTS = """
CREATE TABLE job_artefacts (
    job_id      uuid NOT NULL,
    name        text NOT NULL,
    storage_key text NOT NULL,
    media_type  text NOT NULL,
    bytes       bigint NOT NULL,
    sha256      text NOT NULL,
    lease_token integer NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, name)
)
"""

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
WITH (fillfactor = 50)
"""

QUEUES = """
CREATE TABLE queues (
    name          text PRIMARY KEY,
    paused_at     timestamptz,
    paused_reason text
)
"""

IDEMPOTENCY = """
CREATE TABLE idempotency_keys (
    tenant      text NOT NULL,
    key         text NOT NULL,
    fingerprint text NOT NULL,
    state       text NOT NULL,
    attempt     integer NOT NULL,
    answer      jsonb,
    created_at  timestamptz NOT NULL,
    stale_at    timestamptz NOT NULL,
    finished_at timestamptz,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant, key),
    CONSTRAINT idempotency_keys_state_known CHECK (state IN ('in_progress', 'done', 'failed'))
);
CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at)
"""


def upgrade() -> None:
    for script in (JOBS, INDEXES, EVENTS, ARTEFACTS, WORKERS, QUEUES, IDEMPOTENCY):
        for statement in script.split(";"):
            op.execute(statement)
