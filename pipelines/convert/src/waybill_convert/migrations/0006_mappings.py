"""Mappings of tenants, their samples, and the version that a job named

Revision: convert_0006, after convert_0005
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "convert_0006"
down_revision = "convert_0005"
branch_labels = None
depends_on = None

# The tenant '' has those that an operator shares with all tenants. `changed_at` moves with the samples, too: whoever
# publishes must have tested exactly this.
MAPPINGS = """
CREATE TABLE mappings (
    tenant       text NOT NULL,
    name         text NOT NULL,
    state        text NOT NULL DEFAULT 'draft',
    title        text NOT NULL,
    document     text NOT NULL,
    schemas      jsonb NOT NULL DEFAULT '{}',
    sha256       text NOT NULL,
    bytes        integer NOT NULL,
    author       text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    changed_at   timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz,
    retired_at   timestamptz,

    PRIMARY KEY (tenant, name),
    CONSTRAINT mappings_state_known CHECK (state IN ('draft', 'published', 'retired'))
);
CREATE INDEX mappings_by_name ON mappings (name)
"""

SAMPLES = """
CREATE TABLE mapping_samples (
    id          uuid PRIMARY KEY,
    tenant      text NOT NULL,
    mapping     text NOT NULL,
    name        text NOT NULL,
    storage_key text NOT NULL,
    bytes       bigint NOT NULL,
    sha256      text NOT NULL,
    expected    jsonb,
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX mapping_samples_named ON mapping_samples (tenant, mapping, name)
"""

# A null is a job from before this revision, whose mapping is found by its name.
COLUMN = """
ALTER TABLE conversions ADD COLUMN mapping_sha256 text
"""

# A job names a version by its hash, so what was published never changes, whoever tries. It goes only with its tenant.
NEVER_CHANGES = (
    """
CREATE FUNCTION published_mapping_never_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF current_setting('waybill.erases', true) IS DISTINCT FROM OLD.tenant THEN
            RAISE EXCEPTION 'the mapping % is published and cannot be deleted', OLD.name;
        END IF;
        RETURN OLD;
    END IF;
    IF (NEW.tenant, NEW.name, NEW.title, NEW.document, NEW.schemas, NEW.sha256, NEW.bytes, NEW.published_at)
       IS DISTINCT FROM
       (OLD.tenant, OLD.name, OLD.title, OLD.document, OLD.schemas, OLD.sha256, OLD.bytes, OLD.published_at)
       OR NEW.state = 'draft' OR (OLD.state = 'retired' AND NEW.state <> 'retired') THEN
        RAISE EXCEPTION 'the mapping % is published and cannot be changed', OLD.name;
    END IF;
    RETURN NEW;
END $$
""",
    """
CREATE TRIGGER published_mapping_never_changes
    BEFORE UPDATE OR DELETE ON mappings
    FOR EACH ROW WHEN (OLD.state <> 'draft')
    EXECUTE FUNCTION published_mapping_never_changes()
""",
)

BECOMES_GARBAGE = (
    """
CREATE FUNCTION samples_become_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO garbage (key, since) SELECT storage_key, now() FROM removed ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER samples_become_garbage
    AFTER DELETE ON mapping_samples REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION samples_become_garbage()
""",
    """
CREATE FUNCTION samples_leave_with_mapping() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mapping_samples WHERE tenant = OLD.tenant AND mapping = OLD.name;
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER samples_leave_with_mapping
    AFTER DELETE ON mappings
    FOR EACH ROW EXECUTE FUNCTION samples_leave_with_mapping()
""",
)


def upgrade() -> None:
    execute(MAPPINGS, SAMPLES, COLUMN, *NEVER_CHANGES, *BECOMES_GARBAGE)
