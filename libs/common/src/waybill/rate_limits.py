"""Rate limits, counted in Postgres so that they hold across replicas.

This is the generic cell rate algorithm: each subject has one row with one time. A subject may use its whole `limit` at
once; after that it gets one more every `per / limit` seconds. There is no window to wait out and no counter to reset.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.db.database import Connection

# The row changes only if the request is granted: asking too early costs nothing. The row's lock puts two concurrent
# requests in order, and the second sees what the first took.
_TAKE = """
INSERT INTO rate_limits AS known (subject, tat) VALUES ($1, now() + $2::float8 * interval '1 second')
    ON CONFLICT (subject) DO UPDATE SET tat = GREATEST(known.tat, now()) + $2::float8 * interval '1 second'
    WHERE GREATEST(known.tat, now()) + ($2::float8 - $3::float8) * interval '1 second' <= now()
RETURNING true
"""

_WAIT = """
SELECT extract(epoch FROM tat + ($2::float8 - $3::float8) * interval '1 second' - now())
  FROM rate_limits WHERE subject = $1
"""

_FORGET = """
DELETE FROM rate_limits
 WHERE subject = ANY (ARRAY(SELECT subject FROM rate_limits WHERE tat < now() LIMIT $1 FOR UPDATE SKIP LOCKED))
"""


async def take(connection: Connection, subject: str, *, limit: int, per: float = 60.0) -> float | None:
    """Take one of `limit` per `per` seconds. None if granted, else the seconds until the next one is available."""
    each = per / limit
    if await connection.fetchval(_TAKE, subject, each, per):
        return None
    wait = await connection.fetchval(_WAIT, subject, each, per)
    return max(1.0, math.ceil(float(wait))) if wait is not None else 1.0


async def forget_idle(connection: Connection, *, limit: int = 1000) -> int:
    """Delete some rows of subjects that could take their whole limit again. Returns how many."""
    return int((await connection.execute(_FORGET, limit)).rpartition(" ")[2])
