"""An embedded Postgres server for `waybill up` and for the tests. Nothing needs to be installed for it.

`server` runs it, `cluster` creates its data directory, `leftovers` cleans up after a killed process, and `binaries`
finds the programs. `account` and `places` are only needed when we are root.
"""

from waybill_cli.local.postgres.binaries import bundled_binaries, debian_binaries
from waybill_cli.local.postgres.errors import PostgresError, PostgresInUseError
from waybill_cli.local.postgres.server import EmbeddedPostgres

__all__ = [
    "EmbeddedPostgres",
    "PostgresError",
    "PostgresInUseError",
    "bundled_binaries",
    "debian_binaries",
]
