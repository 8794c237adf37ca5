"""Changes are told through the relay while many announce something at once

Revision: engine_0014, after engine_0013
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "engine_0014"
down_revision = "engine_0013"
branch_labels = None
depends_on = ("platform_0004",)

# As in platform_0004, but a transaction that tells of a change waits for no other; see decision 0022.
TELL = """
CREATE OR REPLACE FUNCTION waybill_tell(whose text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM waybill_announce('waybill_changes', whose);
END $$
"""


def upgrade() -> None:
    execute(TELL)
