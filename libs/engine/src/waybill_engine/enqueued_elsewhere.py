"""Counts jobs that no service enqueues and so none can count: those of the SQL function and of commands.

A command is gone before anybody could scrape it, and the function runs in its caller's process. Both add a row in the
transaction that enqueues, so that what is rolled back is not counted. Whoever takes a sample adds the rows up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.db.database import Connection

BY_COMMAND, BY_SQL = "command", "sql"

_ADD = "INSERT INTO enqueued_elsewhere (kind, by, jobs) VALUES ($1, $2, $3)"

# A few rows are cheaper to read than to replace. LIMIT bounds what one sample does; the next one goes on.
_ADD_UP = """
WITH many AS MATERIALIZED (
    SELECT id FROM enqueued_elsewhere
     WHERE (SELECT count(*) FROM (SELECT FROM enqueued_elsewhere LIMIT $1 + 1) AS few) > $1
     ORDER BY id
     LIMIT $2
), gone AS (
    DELETE FROM enqueued_elsewhere WHERE id = ANY (ARRAY(SELECT id FROM many)) RETURNING kind, by, jobs
)
INSERT INTO enqueued_elsewhere (kind, by, jobs) SELECT kind, by, sum(jobs) FROM gone GROUP BY kind, by
"""

_TOTALS = "SELECT kind, by, sum(jobs)::bigint AS jobs FROM enqueued_elsewhere GROUP BY kind, by"

FEW = 1000
"""So many rows may lie there."""
MOST_ADDED_UP = 200_000


async def add(connection: Connection, kind: str, by: str, jobs: int = 1) -> None:
    """Count jobs that this transaction enqueues."""
    await connection.execute(_ADD, kind, by, jobs)


async def add_up(connection: Connection) -> None:
    """Replace many rows by their sums. Only one process at a time may do this."""
    await connection.execute(_ADD_UP, FEW, MOST_ADDED_UP)


async def totals(connection: Connection) -> dict[tuple[str, str], int]:
    """How many jobs of each kind were ever enqueued by each."""
    return {(row["kind"], row["by"]): row["jobs"] for row in await connection.fetch(_TOTALS)}
