"""The index by which the janitor knows whether a job names a retired mapping

Revision: convert_0011, after convert_0010
"""

from __future__ import annotations

from waybill.db.migrations.statements import create_index

revision = "convert_0011"
down_revision = "convert_0010"
branch_labels = None
depends_on = None

# The version that a job runs by: the one that its document chose, or the one that it named. A job without a hash names
# whatever has the name.


def upgrade() -> None:
    create_index("conversions_version", "ON conversions (COALESCE(used_sha256, mapping_sha256, mapping))")
