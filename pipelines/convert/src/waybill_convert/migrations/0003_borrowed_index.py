"""The index of borrowed documents

Revision: convert_0003, after convert_0002
"""

from __future__ import annotations

from waybill.db.migrations.statements import create_index

revision = "convert_0003"
down_revision = "convert_0002"
branch_labels = None
depends_on = None

# Not in convert_0002, which changes the table: every upload would wait while the index is made.
BORROWED = "ON conversions (upload_key) WHERE upload_borrowed AND upload_deleted_at IS NULL"


def upgrade() -> None:
    create_index("conversions_borrowed", BORROWED)
