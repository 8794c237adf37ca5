"""Which kinds' caps an operator decided, so that a default never comes back over it

Revision: 0008, after 0007
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Outlives the cap: one that was lifted by hand is not put back.
DECIDED = """
CREATE TABLE decided_caps (
    kind text PRIMARY KEY
);
INSERT INTO decided_caps (kind) SELECT kind FROM caps WHERE tenant IS NULL
"""


def upgrade() -> None:
    for statement in DECIDED.split(";"):
        op.execute(statement)
