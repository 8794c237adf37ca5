"""Lanes of owners: below a tenant, its owners take turns

Revision: engine_0013, after engine_0012
"""

from __future__ import annotations

from waybill.db.migrations.statements import create_index, execute

revision = "engine_0013"
down_revision = "engine_0012"
branch_labels = None
depends_on = None

# Workers of release 0.1.0 go by this index, too: they sort what a tenant has before they take its first jobs.
OWNER_ORDER = """
ON jobs (queue, kind, isolate, priority DESC, tenant, owner, created_at, id) WHERE state = 'queued'
"""

OLD_ORDER = "DROP INDEX jobs_lane_order"

# One line of a long function changes: the announcement names the owner, too.
ANNOUNCE_OWNER = """
DO $$
DECLARE
    named CONSTANT text := 'json_build_array(queue, kind, priority, tenant)';
    naming CONSTANT text := 'json_build_array(queue, kind, priority, tenant, COALESCE(owner, tenant))';
    definition CONSTANT text := (SELECT pg_get_functiondef(oid) FROM pg_proc
                                  WHERE proname = 'waybill_enqueue' AND pronamespace = current_schema()::regnamespace);
BEGIN
    IF strpos(definition, named) = 0 THEN
        RAISE 'The function waybill_enqueue is not the one that engine_0005 made.';
    END IF;
    EXECUTE replace(definition, named, naming);
END $$
"""


def upgrade() -> None:
    create_index("jobs_owner_order", OWNER_ORDER)
    execute(OLD_ORDER, ANNOUNCE_OWNER)
