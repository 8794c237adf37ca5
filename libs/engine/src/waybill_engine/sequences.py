"""Sequences: jobs of one tenant, kind and key run in the order in which they were enqueued, at most n at once.

A job of a sequence either holds a place, or it is parked: `scheduled`, with a `run_at` of infinity and `parked_for`
set, so that no claim, promotion or due poll sees it. Every job is parked when it is enqueued. It holds a place from the
moment it is let in until it has ended for good: while it runs, waits for a retry or its children, or is delayed.
`advance` lets the first parked jobs in. Whoever enqueues or ends jobs of a sequence calls it in the same transaction.

Only the holder of the key's lock lets jobs in, so there are never too many. Nobody ever waits for that lock, nor for
the row of a parked job. A transaction that cannot have them leaves a missed turn, a row that commits with its change,
and a worker takes the turn when the others have committed. So sequences cannot deadlock with anything, in whatever
order a transaction touches them, and a transaction that stays open delays nothing but the sequences it touched.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from waybill.errors import Refused
from waybill.pg_text import is_storable
from waybill_engine.announcements import ANNOUNCE_DUE, ANNOUNCE_QUEUES

if TYPE_CHECKING:
    from waybill.db.database import Connection

_MOST_AT_ONCE = 1000

_MOST_LOCKS = 200
"""How many keys one transaction locks. Postgres keeps such locks in a table of fixed size that all sessions share, so a
transaction that enqueues into thousands of sequences leaves the others to the workers."""

_TURNS_AT_ONCE = 100

# A snapshot that is older than the lock could show places as taken that have become free since. So transactions with
# one snapshot for all their statements lock nothing. The setting counts the locks of this transaction.
_TRY_LOCK = f"""
WITH asked AS MATERIALIZED (
    SELECT earlier, set_config('waybill.sequence_locks', (earlier + cardinality($1::text[]))::text, true)
      FROM (SELECT COALESCE(NULLIF(current_setting('waybill.sequence_locks', true), ''), '0')::bigint AS earlier
            OFFSET 0) AS setting
)
SELECT CASE WHEN asked.earlier + sequence.number <= {_MOST_LOCKS}
             AND current_setting('transaction_isolation') = 'read committed'
            THEN pg_try_advisory_xact_lock(hashtextextended(
                     'waybill sequence ' || sequence.kind || ' ' || sequence.tenant || ' ' || sequence.key, 0))
            ELSE false END AS locked
  FROM asked, unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS sequence (tenant, kind, key, number)
 ORDER BY sequence.number
"""  # noqa: S608 - made of constants


def parked(row: str) -> str:
    """SQL for whether `row`, a row of `jobs`, is parked, to be found by the index `jobs_parked`.

    `IS TRUE` rules out the index `jobs_scheduled`. The state is asked for because release 0.1.0 cancels a parked job
    without a word about `parked_for`.
    """
    return f"{row}.parked_for IS NOT NULL AND ({row}.state = 'scheduled') IS TRUE"


def holds_place(row: str) -> str:
    """SQL for whether `row` holds a place in its sequence. It is the condition of the index `jobs_in_turn`."""
    return f"""{row}.sequence_key IS NOT NULL AND {row}.parked_for IS NULL
                      AND {row}.state IN ('scheduled', 'queued', 'running')"""


def in_sequence(row: str, sequence: str) -> str:
    """SQL for whether `row` is a job of `sequence`, a row with tenant, kind and sequence_key."""
    return f"""{row}.tenant = {sequence}.tenant AND {row}.kind = {sequence}.kind
                      AND {row}.sequence_key = {sequence}.sequence_key"""


def sequence_of(row: str) -> str:
    """SQL for the sequence of `row`, as `advance` takes it; NULL if it has none."""
    return f"CASE WHEN {row}.sequence_key IS NOT NULL THEN ARRAY[{row}.tenant, {row}.kind, {row}.sequence_key] END"


# A job is let in when it has room by its own number and by those of all parked jobs before it, so that it overtakes
# none. A job that somebody else has locked stops those behind it. So does one that changed since the statement began
# and is no longer parked: the sequence is looked at once more.
#
# LIMIT keeps the look at a sequence short, however many jobs are parked in it.
_ADVANCE = f"""
WITH sequences AS MATERIALIZED (
    SELECT tenant, kind, sequence_key, number
      FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS given (tenant, kind, sequence_key, number)
), first AS MATERIALIZED (
    SELECT sequences.number, holding.jobs AS holding, next.id, next.sequence_at_once, next.sequence_position
      FROM sequences,
           LATERAL (
               SELECT sequence_at_once FROM jobs
                WHERE {in_sequence("jobs", "sequences")} AND {parked("jobs")}
                ORDER BY sequence_position
                LIMIT 1
           ) AS head,
           LATERAL (
               SELECT count(*) AS jobs
                 FROM (SELECT FROM jobs WHERE {in_sequence("jobs", "sequences")} AND {holds_place("jobs")}
                        LIMIT head.sequence_at_once) AS held
           ) AS holding,
           LATERAL (
               SELECT id, sequence_at_once, sequence_position FROM jobs
                WHERE {in_sequence("jobs", "sequences")} AND {parked("jobs")}
                ORDER BY sequence_position
                LIMIT head.sequence_at_once - holding.jobs
           ) AS next
), next AS MATERIALIZED (
    SELECT number, id, sequence_position,
           holding + row_number() OVER in_order <= min(sequence_at_once) OVER in_order AS has_room
      FROM first
    WINDOW in_order AS (PARTITION BY number ORDER BY sequence_position)
), locked AS MATERIALIZED (
    SELECT id FROM jobs
     WHERE id = ANY (ARRAY(SELECT id FROM next WHERE has_room)) AND ({parked("jobs")}) IS TRUE
       FOR UPDATE SKIP LOCKED
), turns AS MATERIALIZED (
    SELECT number, id,
           bool_and(id = ANY (ARRAY(SELECT id FROM locked)))
               OVER (PARTITION BY number ORDER BY sequence_position) AS taken
      FROM next
     WHERE has_room
), let_in AS (
    UPDATE jobs
       SET parked_for = NULL, updated_at = now(),
           state = CASE WHEN pending_children = 0 AND parked_for <= now() THEN 'queued' ELSE 'scheduled' END,
           run_at = CASE WHEN pending_children = 0 THEN GREATEST(parked_for, now()) ELSE 'infinity' END
     WHERE id = ANY (ARRAY(SELECT id FROM turns WHERE taken))
    RETURNING queue, state, run_at
), ready AS (
    SELECT queue FROM let_in WHERE state = 'queued'
), later AS (
    SELECT run_at FROM let_in WHERE state = 'scheduled' AND run_at < 'infinity'
), {ANNOUNCE_QUEUES}, {ANNOUNCE_DUE}
SELECT ARRAY(SELECT DISTINCT number FROM turns WHERE NOT taken) AS missed
  FROM announced, announced_due
"""  # noqa: S608 - made of constants

_LEAVE_TURNS = """
WITH missed AS (
    INSERT INTO missed_turns (tenant, kind, sequence_key)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
    RETURNING 1
)
SELECT CASE WHEN $4 THEN pg_notify('waybill_scheduled', '0') END FROM missed LIMIT 1
"""

_TAKE_TURNS = f"""
DELETE FROM missed_turns
 WHERE id = ANY (ARRAY(SELECT id FROM missed_turns ORDER BY id LIMIT {_TURNS_AT_ONCE} FOR UPDATE SKIP LOCKED))
RETURNING tenant, kind, sequence_key
"""  # noqa: S608 - made of constants

MISSED_TURN_IN = "SELECT 0::float8 FROM missed_turns LIMIT 1"
"""SQL for the seconds until the next missed turn can be tried: now, or NULL if there is none."""

# From one key to the next by the index, however many jobs are parked under each.
_STALLED = f"""
WITH RECURSIVE sequences AS (
    (SELECT tenant, kind, sequence_key, sequence_at_once FROM jobs
      WHERE {parked("jobs")} AND (tenant, kind, sequence_key) > ($1::text, $2::text, $3::text)
      ORDER BY tenant, kind, sequence_key, sequence_position
      LIMIT 1)
     UNION ALL
    SELECT next.tenant, next.kind, next.sequence_key, next.sequence_at_once
      FROM sequences, LATERAL (
               SELECT tenant, kind, sequence_key, sequence_at_once FROM jobs
                WHERE {parked("jobs")}
                  AND (tenant, kind, sequence_key) > (sequences.tenant, sequences.kind, sequences.sequence_key)
                ORDER BY tenant, kind, sequence_key, sequence_position
                LIMIT 1
           ) AS next
)
SELECT tenant, kind, sequence_key, holding.jobs < seen.sequence_at_once AS stalled
  FROM (SELECT tenant, kind, sequence_key, sequence_at_once FROM sequences LIMIT $4) AS seen, LATERAL (
           SELECT count(*) AS jobs
             FROM (SELECT FROM jobs WHERE {in_sequence("jobs", "seen")} AND {holds_place("jobs")}
                    LIMIT seen.sequence_at_once) AS held
       ) AS holding
"""  # noqa: S608 - made of constants

_ABOVE = """
WITH RECURSIVE above AS (
    SELECT id, parent_id, sequence_key FROM jobs WHERE id = $1
     UNION ALL
    SELECT parent.id, parent.parent_id, parent.sequence_key
      FROM above, LATERAL (
               SELECT id, parent_id, sequence_key FROM jobs WHERE jobs.id = above.parent_id OFFSET 0
           ) AS parent
)
SELECT id FROM above WHERE sequence_key IS NOT NULL LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """What makes a job wait for earlier ones of its tenant and kind: those with the same key."""

    key: str
    at_once: int = 1
    """How many jobs of the sequence may run at once. With 1, each waits until the one before it is over.

    Give all jobs of a sequence the same number. Where they differ, a job waits until it is in company that small.
    """

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= 200 or not is_storable(self.key):
            raise Refused("A sequence key must have 1 to 200 characters, none of them NUL.")
        if not 1 <= self.at_once <= _MOST_AT_ONCE:
            raise Refused(f"A sequence may have 1 to {_MOST_AT_ONCE} jobs at once.")


class SequenceId(NamedTuple):
    tenant: str
    kind: str
    key: str


async def advance(connection: Connection, sequences: Iterable[Collection[str] | None]) -> None:
    """Let in the parked jobs whose turn it is in these sequences, given as `sequence_of` returns them.

    Call it in the transaction that enqueued or ended jobs of them, after that.
    """
    changed = {SequenceId(*one) for one in sequences if one is not None}
    if changed:
        await _advance(connection, changed, announce=True)


async def take_missed_turns(connection: Connection) -> float | None:
    """Advance sequences that others could not. Returns in how many seconds to try again; None if there is no need."""
    async with connection.transaction():
        taken = [SequenceId(*row) for row in await connection.fetch(_TAKE_TURNS)]
        missed = await _advance(connection, set(taken), announce=False) if taken else 0
    if len(taken) == _TURNS_AT_ONCE and not missed:
        return 0.0
    return 0.25 if missed else None


async def find_stalled(
    connection: Connection, after: SequenceId, limit: int
) -> tuple[list[SequenceId], SequenceId | None]:
    """Sequences in which jobs are parked although there is room; look at `limit` sequences after this one.

    Returns them, and the last one that it looked at, None if there are no more. There are some for as long as a missed
    turn waits for its worker. Beyond that there are none, unless a worker of release 0.1.0 ended a job.
    """
    rows = await connection.fetch(_STALLED, *after, limit)
    seen = [SequenceId(*row[:3]) for row in rows]
    return [one for one, row in zip(seen, rows, strict=True) if row["stalled"]], seen[-1] if seen else None


async def _advance(connection: Connection, changed: Collection[SequenceId], *, announce: bool) -> int:
    """Returns how many sequences could not be advanced and were left as missed turns."""
    ordered = sorted(changed)
    locks = await connection.fetch(_TRY_LOCK, *_columns(ordered))
    locked = [one for one, row in zip(ordered, locks, strict=True) if row["locked"]]
    missed = [one for one, row in zip(ordered, locks, strict=True) if not row["locked"]]
    if locked:
        # A statement of its own, so that it sees everything that was committed under these locks.
        numbers = await connection.fetchval(_ADVANCE, *_columns(locked))
        missed += [locked[number - 1] for number in numbers]
    if missed:
        await connection.fetchval(_LEAVE_TURNS, *_columns(missed), announce)
    return len(missed)


def _columns(sequences: Collection[SequenceId]) -> tuple[list[str], list[str], list[str]]:
    return [one.tenant for one in sequences], [one.kind for one in sequences], [one.key for one in sequences]


async def refuse_below_a_sequence(connection: Connection, parent_id: uuid.UUID) -> None:
    """A job that waits for its children holds its place meanwhile, so they must not wait for one themselves."""
    above = await connection.fetchval(_ABOVE, parent_id)
    if above is not None:
        raise Refused(
            f"Job {above} is in a sequence, so the jobs below it cannot be in one: they could wait for each other for "
            "ever. Put either the parent or its children into sequences."
        )
