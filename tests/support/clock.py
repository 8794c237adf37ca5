"""A database clock that tests can move.

Every statement of the product calls `now()` without a schema. A schema earlier in the search path has another `now()`,
so time passes for all connections and processes at once, and the product needs no hook for it.
"""

from __future__ import annotations

import asyncpg

INSTALL = """
CREATE SCHEMA test_clock;
CREATE TABLE test_clock.shift (seconds float8 NOT NULL);
INSERT INTO test_clock.shift VALUES (0);
CREATE FUNCTION test_clock.now() RETURNS timestamptz STABLE LANGUAGE sql AS
    $$ SELECT pg_catalog.now() + (SELECT seconds FROM test_clock.shift) * interval '1 second' $$;
DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = test_clock, pg_catalog, public', current_database());
END $$;
"""


class Clock:
    def __init__(self, url: str) -> None:
        self._url = url

    async def forward(self, seconds: float) -> None:
        """Move the time forward for every connection to this database."""
        connection = await asyncpg.connect(self._url)
        try:
            await connection.execute("UPDATE test_clock.shift SET seconds = seconds + $1", seconds)
        finally:
            await connection.close()
