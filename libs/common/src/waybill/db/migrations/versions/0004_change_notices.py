"""The function `waybill_tell`: whoever follows somebody's things hears that they changed

Revision: platform_0004, after platform_0003
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "platform_0004"
down_revision = "platform_0003"
branch_labels = None
depends_on = None

# The engine replaces it with one that does not make transactions commit one at a time (engine_0014).
TELL = """
CREATE FUNCTION waybill_tell(whose text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('waybill_changes', whose);
END $$
"""


def upgrade() -> None:
    execute(TELL)
