"""${message}

Revision: ${up_revision}, after ${down_revision | comma,n}
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    execute()
