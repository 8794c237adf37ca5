"""A document that chooses its mapping: among which ones, which one it was, and why

Revision: convert_0008, after convert_0007
"""

from __future__ import annotations

from waybill.db.migrations.statements import execute

revision = "convert_0008"
down_revision = "convert_0007"
branch_labels = None
depends_on = None

# `mapping` and `mapping_sha256` stay what was asked for. For `auto`, the hash is that of a catalogue. These are null
# where the mapping was named, and until the document has chosen one.
COLUMNS = """
ALTER TABLE conversions
    ADD COLUMN used_mapping text,
    ADD COLUMN used_sha256 text,
    ADD COLUMN recognition jsonb
"""

# By the hash of its entries: nearly all documents of a tenant are uploaded while it has the same mappings.
CATALOGUES = """
CREATE TABLE mapping_catalogues (
    sha256 text PRIMARY KEY,
    entries jsonb NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now()
)
"""


def upgrade() -> None:
    execute(COLUMNS, CATALOGUES)
