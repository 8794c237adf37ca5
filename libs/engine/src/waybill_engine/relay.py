"""The relay: one worker sends the announcements of everybody while many are sent at once.

Postgres lets transactions that notify commit one at a time, and each waits for its own write to disk. That is fine for
a single job, and it is the limit of the whole server when many clients enqueue at once. So an announcement is sent by
its own transaction only while there are few. Otherwise it becomes a row in `announcements`, and the relay sends all
rows every few milliseconds, in transactions that do not wait for the disk. A row appears when its transaction commits,
however long that takes; so what is announced can always be seen.

Advisory locks of the class 8422 are the protocol. None of them is ever waited for by an enqueuer.

- 1: held by a transaction that announces something itself. Who does not get it is not alone, and asks for a relay.
- 2: held by the relay while it is on. Announcements then become rows.
- 3: shared by the transactions that wrote rows, until they have ended. The relay goes off only when it gets this lock
  for itself: then no row is left behind, because nobody is about to write one.
- 4: held by the relay, so that there is only one.

Changes that web pages follow (`waybill_tell`) go through it, too.

A relay that dies loses its locks with its connection, and everybody announces for themselves again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.db.database import Connection

_APPOINT = "SELECT pg_try_advisory_lock(8422, 4)"

# This one waits, but only for transactions that look whether there is a relay: they hold it for a moment.
_SWITCH_ON = "SELECT pg_advisory_lock(8422, 2)"

_NOBODY_WRITES = "SELECT pg_try_advisory_lock(8422, 3)"

_SWITCH_OFF = "SELECT pg_advisory_unlock(8422, 2)"

_RESIGN = "SELECT pg_advisory_unlock(8422, 3), pg_advisory_unlock(8422, 4)"

_GIVE_UP_ALL = "SELECT pg_advisory_unlock_all(), pg_notify('waybill_relay', '')"

# Lanes that were announced several times are announced once. Too many of them, and workers are told the queue.
_SEND = """
WITH gone AS (
    DELETE FROM announcements RETURNING channel, topic, since, jobs
), merged AS (
    SELECT channel, topic, min(since) AS since, sum(jobs)::bigint AS jobs, count(*) AS sent,
           count(min(since)) OVER () > 64 AS many
      FROM gone GROUP BY channel, topic
)
SELECT COALESCE(sum(sent), 0)::bigint AS sent,
       count(CASE WHEN many AND since IS NOT NULL THEN pg_notify('waybill_jobs', topic::json ->> 0)
                  ELSE pg_notify(channel, waybill_announcement(topic, since, jobs)) END) AS lanes
  FROM merged
"""


async def switch_on(connection: Connection) -> bool:
    """Become the relay, on a connection that is used for nothing else. False if there is one."""
    if not await connection.fetchval(_APPOINT):
        return False
    await connection.execute(_SWITCH_ON)
    return True


async def pass_on(connection: Connection) -> int:
    """Send what waits, and say how many announcements that was."""
    return int(await connection.fetchval(_SEND))


async def switch_off(connection: Connection) -> bool:
    """Stop being the relay. False if somebody may still write a row: then stay on, and try again."""
    if not await connection.fetchval(_NOBODY_WRITES):
        return False
    await connection.execute(_SWITCH_OFF)
    await pass_on(connection)
    await connection.execute(_RESIGN)
    return True


async def hand_over(connection: Connection) -> None:
    """Stop being the relay at once, and ask for another: some transactions may still count on one."""
    await pass_on(connection)
    await connection.execute(_GIVE_UP_ALL)
