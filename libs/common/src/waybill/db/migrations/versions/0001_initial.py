"""The platform's tables as release 0.1.0 has them: tenants, keys, garbage, the janitor's runs, copies of the storage

Revision: platform_0001, the first
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "platform_0001"
down_revision = None
branch_labels = ("platform",)
depends_on = None

# The five ages are columns for one more release; see platform_0002.
TENANTS = """
CREATE TABLE tenants (
    name            text PRIMARY KEY,
    weight          real NOT NULL DEFAULT 1,
    top_priority    smallint NOT NULL DEFAULT 0,
    hold_at         timestamptz,
    hold_reason     text,
    pdf_ttl_days    real,
    xml_ttl_days    real,
    xml_on_download boolean,
    events_ttl_days real,
    jobs_ttl_days   real,
    CONSTRAINT tenants_weight_counts CHECK (weight > 0)
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

STORAGE = """
CREATE TABLE garbage (
    key   text PRIMARY KEY,
    since timestamptz NOT NULL
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
)
"""


def upgrade() -> None:
    execute(TENANTS, IDEMPOTENCY, SECURITY, STORAGE, JANITOR)
