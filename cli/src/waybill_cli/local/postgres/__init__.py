"""A Postgres server of our own, for `waybill up` and for the tests; nothing needs to be installed for it.

`server` runs it, `cluster` makes its data directory, `leftovers` deals with what a killed process left,
`binaries` finds the programs, and `account` and `places` are what it takes when we are root.
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
