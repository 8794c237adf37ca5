"""The index by which the janitor knows whether a catalogue is still in use

Revision: convert_0009, after convert_0008
"""

from __future__ import annotations

from waybill.db.migrations.statements import create_index

revision = "convert_0009"
down_revision = "convert_0008"
branch_labels = None
depends_on = None

# Not in convert_0008, which changes the table: every upload would wait while the index is made.


def upgrade() -> None:
    create_index("conversions_catalogue", "ON conversions (mapping_sha256) WHERE mapping = 'auto'")
