"""The limits of kinds, where SQL finds them: the function `waybill_enqueue` reads them from the table `kinds`.

Python programs take a kind's limits from its `JobKind`. Programs in other languages, and triggers, know only its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_engine.kinds import JobKind

# Rows are locked in the order of their names, because workers start together. What has not changed is not written.
_RECORD = """
INSERT INTO kinds (name, queue, max_attempts, max_crashes, time_limit, tells_end)
SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::smallint[], $5::real[], $6::bool[])
              AS mine (name, queue, max_attempts, max_crashes, time_limit, tells_end)
 ORDER BY name
    ON CONFLICT (name) DO UPDATE
       SET queue = excluded.queue, max_attempts = excluded.max_attempts, max_crashes = excluded.max_crashes,
           time_limit = excluded.time_limit, tells_end = excluded.tells_end
     WHERE (kinds.queue, kinds.max_attempts, kinds.max_crashes, kinds.time_limit, kinds.tells_end)
           IS DISTINCT FROM
           (excluded.queue, excluded.max_attempts, excluded.max_crashes, excluded.time_limit, excluded.tells_end)
"""


async def record_limits(connection: Connection, kinds: Iterable[JobKind]) -> None:
    """Record the limits of the kinds that this worker serves. If two versions of one disagree, the latest counts."""
    served = list(kinds)
    await connection.execute(
        _RECORD,
        [kind.name for kind in served],
        [kind.queue for kind in served],
        [kind.retry.max_attempts for kind in served],
        [kind.max_crashes for kind in served],
        [kind.time_limit for kind in served],
        [kind.tells_end for kind in served],
    )
