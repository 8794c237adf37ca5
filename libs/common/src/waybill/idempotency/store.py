"""Does the work of a request once, however often it is sent. All statements on `idempotency_keys` are here.

`begin` makes the caller the only holder of a key, or returns what became of it. The holder ends with `finish` or
`fail`. If it runs in the transaction of the work, work and answer commit together, and a second request waits for that
commit. If it runs in its own transaction, a second request learns at once that the first is still running. All times
are the database's.
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
"""A day is long enough for a client that retries over night, and short enough to keep the table small."""
STALE_AFTER = timedelta(minutes=5)
"""Longer than any request may take, so a holder that has not finished by then has died."""
KEY_LENGTH = 255


class HolderReplaced(Conflict):
    """Another holder took over the key. What this one did must be rolled back."""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The state of a key."""

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
    """The result of `begin`. If held, do the work and call `finish`. If not, it is done or somebody works on it."""

    record: KeyRecord
    held: bool


def fingerprint(*parts: bytes | str) -> str:
    """A short string that identifies a request. ("ab", "c") and ("a", "bc") differ."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def should_reprocess(record: KeyRecord, now: datetime) -> bool:
    """Whether a repeated request would get the key: after a failure, after expiry, or if the holder died.

    `begin` makes the same decision in SQL; this is for callers that only read.
    """
    if record.expires_at <= now or record.state is KeyState.FAILED:
        return True
    return record.state is KeyState.IN_PROGRESS and record.stale_at <= now


# One statement decides. Of any number of concurrent requests, exactly one inserts or updates. The others wait for its
# row lock and then see its row, which no longer matches the WHERE clause.
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

# `created_at` is part of the fence, because the attempts start again after an expired row was purged.
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

_FORGET = """
UPDATE idempotency_keys
   SET state = 'failed', answer = NULL
 WHERE tenant = $1 AND key = $2 AND attempt = $3 AND created_at = $4 AND state = 'done'
"""

# Rows that a request is taking over are locked, so they are skipped.
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
    """Become the key's holder, or get its state.

    Raises IdempotencyConflict if the key was used for another request that has not expired.
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
            continue  # it was purged meanwhile, so it is free now
        if existing.fingerprint != fingerprint:
            raise IdempotencyConflict(
                "This Idempotency-Key was used for another request. Send a new key with a new request.",
                detail={"key": key},
            )
        return Begun(existing, held=False)


async def find(connection: Connection, *, tenant: str, key: str) -> KeyRecord | None:
    """The state of a key. This changes nothing."""
    row = await connection.fetchrow(_FIND, tenant, key)
    return None if row is None else _record(row)


async def finish(connection: Connection, held: KeyRecord, answer: Any, *, expires_in: timedelta = EXPIRES_IN) -> None:
    """Store the answer for every later request with this key.

    Raises HolderReplaced if the key is no longer ours. Then the work must not be committed either.
    """
    text = json.dumps(answer, allow_nan=False)
    fence = (held.tenant, held.key, held.attempt, held.created_at)
    if not await connection.fetchval(_FINISH, *fence, text, expires_in):
        raise HolderReplaced(
            "This request took so long that a repetition of it was started. Please look at that one's result."
        )


async def fail(connection: Connection, held: KeyRecord) -> None:
    """Release the key, so that the request may be sent again. It does nothing if the holder was replaced."""
    await connection.execute(_FAIL, held.tenant, held.key, held.attempt, held.created_at)


async def forget(connection: Connection, done: KeyRecord) -> None:
    """The answer is not good any more: whoever sends the request again does its work again."""
    await connection.execute(_FORGET, done.tenant, done.key, done.attempt, done.created_at)


async def purge(connection: Connection, *, limit: int = 1000) -> int:
    """Delete up to `limit` expired keys, the oldest first. Returns how many."""
    return int(await connection.fetchval(_PURGE, limit))


def _record(row: asyncpg.Record) -> KeyRecord:
    fields = dict(row)
    answer = fields.pop("answer")
    state = KeyState(fields.pop("state"))
    return KeyRecord(**fields, state=state, answer=None if answer is None else json.loads(answer))
