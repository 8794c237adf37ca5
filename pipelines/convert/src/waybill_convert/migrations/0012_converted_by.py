"""Which release read a document, so that its result is used again for the same document only by the same

Revision: convert_0012, after convert_0011
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "convert_0012"
down_revision = "convert_0011"
branch_labels = None
depends_on = None

# A null is a result that was made before this revision, or by a worker that does not know of it.
CONVERTED_BY = """
ALTER TABLE conversions ADD COLUMN converted_by text
"""


def upgrade() -> None:
    execute(CONVERTED_BY)
