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
# What costs more than the whole limit is granted to a subject that has used nothing, and is paid for afterwards.
_TAKE = """
INSERT INTO rate_limits AS known (subject, tat) VALUES ($1, now() + $2::float8 * interval '1 second')
    ON CONFLICT (subject) DO UPDATE SET tat = GREATEST(known.tat, now()) + $2::float8 * interval '1 second'
    WHERE GREATEST(known.tat, now()) + (LEAST($2::float8, $3::float8) - $3::float8) * interval '1 second' <= now()
RETURNING true
"""

_WAIT = """
SELECT extract(epoch FROM tat + (LEAST($2::float8, $3::float8) - $3::float8) * interval '1 second' - now())
  FROM rate_limits WHERE subject = $1
"""

_CORRECT = "UPDATE rate_limits SET tat = tat + $2::float8 * interval '1 second' WHERE subject = $1"

_QUEUE_UP = """
INSERT INTO rate_limits AS known (subject, tat)
VALUES ($1, now() + LEAST($2::float8, $3::float8) * interval '1 second')
    ON CONFLICT (subject) DO UPDATE
       SET tat = LEAST(GREATEST(known.tat, now()) + $2::float8 * interval '1 second',
                       now() + $3::float8 * interval '1 second')
RETURNING extract(epoch FROM tat - now())::float8
"""

_FORGET = """
DELETE FROM rate_limits
 WHERE subject = ANY (ARRAY(SELECT subject FROM rate_limits WHERE tat < now() LIMIT $1 FOR UPDATE SKIP LOCKED))
"""


async def take(connection: Connection, subject: str, *, limit: int, per: float = 60.0, cost: int = 1) -> float | None:
    """Take one of `limit` per `per` seconds, or `cost` of them. None if granted, else the seconds until they are
    available."""
    each = cost * per / limit
    if await connection.fetchval(_TAKE, subject, each, per):
        return None
    wait = await connection.fetchval(_WAIT, subject, each, per)
    return max(1.0, math.ceil(float(wait))) if wait is not None else 1.0


async def correct(connection: Connection, subject: str, *, limit: int, per: float = 60.0, by: int) -> None:
    """What was taken cost so many more than was thought, or fewer if `by` is negative."""
    await connection.execute(_CORRECT, subject, by * per / limit)


async def queue_up(
    connection: Connection, subject: str, *, limit: int, per: float = 60.0, cost: int = 1, at_most: float
) -> float:
    """A place in a line that moves at the pace of the limit: in how many seconds to ask again.

    Nothing is taken, and nobody waits longer than `at_most` for his place: those before him may have gone away.
    """
    return float(await connection.fetchval(_QUEUE_UP, subject, cost * per / limit, at_most))


async def forget_idle(connection: Connection, *, limit: int = 1000) -> int:
    """Delete some rows of subjects that could take their whole limit again. Returns how many."""
    return int((await connection.execute(_FORGET, limit)).rpartition(" ")[2])
