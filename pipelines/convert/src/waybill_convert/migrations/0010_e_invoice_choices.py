"""What may be lost of an e-invoice, as each upload says, and which mappings read e-invoices

Revision: convert_0010, after convert_0009
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "convert_0010"
down_revision = "convert_0009"
branch_labels = None
depends_on = None

# A null leaves the choice to the mapping, as it was for all documents before.
LOSS = """
ALTER TABLE conversions ADD COLUMN loss text
"""

# A null is a mapping that was pushed before this revision: which documents it reads, only the gateway knows.
EMBEDDED = """
ALTER TABLE mappings ADD COLUMN embedded boolean
"""


def upgrade() -> None:
    execute(LOSS, EMBEDDED)
