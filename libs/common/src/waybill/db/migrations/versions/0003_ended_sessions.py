"""Sessions that have ended are rows until their cookies would have expired

Revision: platform_0003, after platform_0002

Processes of release 0.1.0 do not look here: while they run, a cookie that was copied before signing out is still good
for them.
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "platform_0003"
down_revision = "platform_0002"
branch_labels = None
depends_on = None

ENDED_SESSIONS = """
CREATE TABLE ended_sessions (
    session_id uuid PRIMARY KEY,
    until      timestamptz NOT NULL
)
"""


def upgrade() -> None:
    execute(ENDED_SESSIONS)
