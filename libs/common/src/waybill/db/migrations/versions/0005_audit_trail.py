"""The audit trail: events that nobody changes or removes, linked into a chain

Revision: platform_0005, after platform_0004

Services of release 0.1.0 do not record anything here.
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "platform_0005"
down_revision = "platform_0004"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE audit_events (
    id         uuid PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor      text NOT NULL,
    key_id     uuid,
    session_id uuid,
    address    text,
    request_id uuid,
    action     text NOT NULL,
    subject    text,
    tenant     text,
    outcome    text NOT NULL,
    times      integer NOT NULL DEFAULT 1,
    detail     jsonb NOT NULL DEFAULT '{}',
    position   bigint,
    hash       bytea,
    CONSTRAINT audit_events_linked_whole CHECK ((position IS NULL) = (hash IS NULL)),
    CONSTRAINT audit_events_times_count CHECK (times > 0)
);
CREATE UNIQUE INDEX audit_events_chain ON audit_events (position) WHERE position IS NOT NULL;
CREATE INDEX audit_events_unlinked ON audit_events (at, id) WHERE position IS NULL;
CREATE INDEX audit_events_by_time ON audit_events (at, id);
CREATE TABLE audit_checkpoints (
    name        text PRIMARY KEY,
    position    bigint NOT NULL,
    hash        bytea NOT NULL,
    at          timestamptz NOT NULL DEFAULT now(),
    signed_with text NOT NULL,
    signature   bytea NOT NULL,
    CONSTRAINT audit_checkpoints_known CHECK (name IN ('head', 'cut'))
)
"""

# An event comes in unlinked, is linked once, and goes only when the cut has passed it. Whoever may alter the table can
# get around this; the chain shows it then.
GUARD = """
CREATE FUNCTION waybill_guard_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.position IS NULL THEN
            RETURN NEW;
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF OLD.position IS NULL AND NEW.position IS NOT NULL
           AND to_jsonb(OLD) - 'position' - 'hash' = to_jsonb(NEW) - 'position' - 'hash' THEN
            RETURN NEW;
        END IF;
    ELSIF TG_OP = 'DELETE' THEN
        IF OLD.position <= (SELECT position FROM audit_checkpoints WHERE name = 'cut') THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only: % on audit_events is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$
"""

TRIGGERS = """
CREATE TRIGGER audit_events_append_only BEFORE INSERT OR UPDATE OR DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION waybill_guard_audit();
CREATE TRIGGER audit_events_never_emptied BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION waybill_guard_audit()
"""


def upgrade() -> None:
    execute(TABLES, GUARD, TRIGGERS)
