"""Doing a thing once, however often it is asked for: every statement on `idempotency_keys`.

`begin` either makes the caller the one holder of a key or says what became of it; the holder ends with
`finish` or `fail`. Called in the transaction of the work itself, work and answer commit together and a
second request waits for that commit; called on its own, a second request is told at once that the first is
still running. Time is the database's.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import asyncpg

from waybill.errors import Conflict, IdempotencyConflict, Refused
from waybill.idempotency.models import KeyState

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]

EXPIRES_IN = timedelta(hours=24)
"""A day: long enough for a client that retries over night, short enough to keep the table small."""
STALE_AFTER = timedelta(minutes=5)
"""Longer than any request may take; a holder silent for that long has died."""
KEY_LENGTH = 255


class HolderReplaced(Conflict):
    """Another holder took the key over. Whatever this one did must be rolled back."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is known about a key."""

    tenant: str
    key: str
    fingerprint: str
    state: KeyState
    attempt: int
    answer: Any
    created_at: datetime
    stale_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Begun:
    """The answer of `begin`. Held: do the work, then `finish`. Not held: it is done, or somebody is at it."""

    record: Record
    held: bool


def fingerprint(*parts: bytes | str) -> str:
    """What a request asks for, in one short string; ("ab", "c") is not the same as ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def should_reprocess(record: Record, now: datetime) -> bool:
    """Whether the same request would become the key's holder: after a failure, expiry, or a holder that died.

    `begin` decides the same in SQL; this is for those who only look.
    """
    if record.expires_at <= now or record.state is KeyState.FAILED:
        return True
    return record.state is KeyState.IN_PROGRESS and record.stale_at <= now


# One statement decides. Of any number of newcomers exactly one inserts or updates; the others wait for its
# row lock and then see the row as it left it, which the WHERE no longer lets through.
_BEGIN = """
INSERT INTO idempotency_keys AS held
       (tenant, key, fingerprint, state, attempt, created_at, stale_at, expires_at)
VALUES ($1, $2, $3, 'in_progress', 1, now(), now() + $4::interval, now() + $5::interval)
ON CONFLICT (tenant, key) DO UPDATE
   SET fingerprint = excluded.fingerprint,
       state       = 'in_progress',
       attempt     = held.attempt + 1,
       answer      = NULL,
       stale_at    = excluded.stale_at,
       finished_at = NULL,
       expires_at  = excluded.expires_at
 WHERE held.expires_at <= now()
    OR (held.fingerprint = excluded.fingerprint
        AND (held.state = 'failed' OR (held.state = 'in_progress' AND held.stale_at <= now())))
RETURNING tenant, key, fingerprint, state, attempt, answer::text, created_at, stale_at, expires_at
"""

_FIND = """
SELECT tenant, key, fingerprint, state, attempt, answer::text, created_at, stale_at, expires_at
  FROM idempotency_keys
 WHERE tenant = $1 AND key = $2
"""

# `created_at` is part of the fence because the count starts again when an expired row has been purged.
_FINISH = """
UPDATE idempotency_keys
   SET state = 'done', answer = $5::text::jsonb, finished_at = now(), expires_at = now() + $6::interval
 WHERE tenant = $1 AND key = $2 AND attempt = $3 AND created_at = $4 AND state = 'in_progress'
RETURNING true
"""

_FAIL = """
UPDATE idempotency_keys
   SET state = 'failed', finished_at = now()
 WHERE tenant = $1 AND key = $2 AND attempt = $3 AND created_at = $4 AND state = 'in_progress'
"""

# Rows somebody is just beginning again are locked and skipped: they are not expired for much longer.
_PURGE = """
WITH expired AS MATERIALIZED (
    SELECT tenant, key
      FROM idempotency_keys
     WHERE expires_at <= now()
     ORDER BY expires_at
     LIMIT $1
       FOR UPDATE SKIP LOCKED
), purged AS (
    DELETE FROM idempotency_keys AS held
     USING expired
     WHERE held.tenant = expired.tenant AND held.key = expired.key
    RETURNING 1
)
SELECT count(*) FROM purged
"""


async def begin(
    connection: Connection,
    *,
    tenant: str,
    key: str,
    fingerprint: str,
    expires_in: timedelta = EXPIRES_IN,
    stale_after: timedelta = STALE_AFTER,
) -> Begun:
    """Become the key's holder, or learn what became of it.

    Raises IdempotencyConflict when the key was used for another request that has not expired.
    """
    if not 0 < len(key) <= KEY_LENGTH or not key.isprintable():
        raise Refused(f"An Idempotency-Key has 1 to {KEY_LENGTH} printable characters. A UUID is a good one.")
    if not timedelta() < stale_after <= expires_in:
        raise ValueError("stale_after must be positive and at most expires_in: a key must outlive its holder")
    while True:
        row = await connection.fetchrow(_BEGIN, tenant, key, fingerprint, stale_after, expires_in)
        if row is not None:
            return Begun(_record(row), held=True)
        existing = await find(connection, tenant=tenant, key=key)
        if existing is None:
            continue  # purged in between, so it is free now
        if existing.fingerprint != fingerprint:
            raise IdempotencyConflict(
                "This Idempotency-Key was used for another request. Send a new key with a new request.",
                detail={"key": key},
            )
        return Begun(existing, held=False)


async def find(connection: Connection, *, tenant: str, key: str) -> Record | None:
    """What is known about a key, without touching it."""
    row = await connection.fetchrow(_FIND, tenant, key)
    return None if row is None else _record(row)


async def finish(connection: Connection, held: Record, answer: Any, *, expires_in: timedelta = EXPIRES_IN) -> None:
    """Store the answer that every later request with this key gets.

    Raises HolderReplaced when the key is no longer ours; then the work must not be committed either.
    """
    text = json.dumps(answer, allow_nan=False)
    fence = (held.tenant, held.key, held.attempt, held.created_at)
    if not await connection.fetchval(_FINISH, *fence, text, expires_in):
        raise HolderReplaced(
            "This request took so long that a repetition of it was started. Please look at that one's result."
        )


async def fail(connection: Connection, held: Record) -> None:
    """Give the key up, so that the same request may be tried again. A replaced holder changes nothing."""
    await connection.execute(_FAIL, held.tenant, held.key, held.attempt, held.created_at)


async def purge(connection: Connection, *, limit: int = 1000) -> int:
    """Delete expired keys, oldest first, a bounded number at a time; says how many."""
    return int(await connection.fetchval(_PURGE, limit))


def _record(row: asyncpg.Record) -> Record:
    fields = dict(row)
    answer = fields.pop("answer")
    state = KeyState(fields.pop("state"))
    return Record(**fields, state=state, answer=None if answer is None else json.loads(answer))
