"""Jobs chosen by what they are: kind, tenant, queue, state, error code, age, unique key.

A `Selection` finds the jobs that match a `JobFilter`, a page at a time and without locking any, and locks those of them
that can be changed together. `bulk` acts on them.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from waybill.errors import Refused
from waybill_engine.control import RETRYABLE
from waybill_engine.models import FINAL, State

if TYPE_CHECKING:
    from waybill.db.database import Connection

    Lend = Callable[[], AbstractAsyncContextManager[Connection]]
    """Lends a connection for one step: `Database.hot`."""

NIL = uuid.UUID(int=0)
"""Before every job."""

_EXAMINED = 5000
"""How many jobs one look examines, whether they match or not."""

# Running jobs that were asked to stop already need not be asked again. Pinned jobs and those of a tenant under legal
# hold are never deleted.
_MATCHES = """(
    jobs.state = ANY ($1::text[])
    AND ($2::text IS NULL OR jobs.kind = $2) AND ($3::text IS NULL OR jobs.tenant = $3)
    AND ($4::text IS NULL OR jobs.queue = $4) AND ($5::text IS NULL OR jobs.error_code = $5)
    AND ($6::text IS NULL OR jobs.unique_key = $6)
    AND ($7::float8 IS NULL OR COALESCE(jobs.finished_at, jobs.created_at) < now() - $7 * interval '1 second')
    AND jobs.created_at <= $8::timestamptz
    AND ($9::text <> 'cancel' OR jobs.cancel_requested_at IS NULL)
    AND ($9 <> 'delete' OR (jobs.pinned_at IS NULL AND NOT EXISTS (
            SELECT FROM tenants WHERE tenants.name = jobs.tenant AND tenants.hold_at IS NOT NULL)))
)"""

_COLUMNS = """id, state, kind, tenant, queue, error_code, unique_key, finished_at, created_at, cancel_requested_at,
           pinned_at"""

# A page of the primary keys, and what matches in it. Dead letters have an index, and are never on the shelf.
_PAGE = f"""
WITH page AS MATERIALIZED (
    SELECT {_COLUMNS} FROM all_jobs WHERE id > $10 ORDER BY id LIMIT $11
)
SELECT (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS last,
       ARRAY(SELECT id FROM page AS jobs WHERE {_MATCHES} ORDER BY id) AS ids
"""  # noqa: S608 - made of constants

_PAGE_OF_DEAD_LETTERS = f"""
WITH page AS MATERIALIZED (
    SELECT {_COLUMNS} FROM jobs WHERE state = 'dead_letter' AND id > $10 ORDER BY id LIMIT $11
)
SELECT (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS last,
       ARRAY(SELECT id FROM page AS jobs WHERE {_MATCHES} ORDER BY id) AS ids
"""  # noqa: S608 - made of constants

# All active jobs that match, through the indexes that have nothing else: ended jobs, however many, cost nothing. The
# ids come as bytes, because a million of them are then 16 MB and not 150.
_ACTIVE = f"""
WITH active AS MATERIALIZED (
    SELECT id FROM jobs WHERE state = 'queued' AND {_MATCHES}
     UNION ALL
    SELECT id FROM jobs WHERE state = 'scheduled' AND {_MATCHES}
     UNION ALL
    SELECT id FROM jobs WHERE lease_owner IS NOT NULL AND {_MATCHES}
)
SELECT string_agg(uuid_send(id), '' ORDER BY id) FROM active WHERE id > $10
"""  # noqa: S608 - made of constants

_MATCHES_ONE = f"SELECT EXISTS (SELECT FROM jobs WHERE id = $10 AND {_MATCHES})"  # noqa: S608 - made of constants

# What can be changed together: jobs without children, none of which could collide with another over its unique key. It
# waits for nobody, so that one locked job does not keep a whole step waiting with its locks.
_LOCK = f"""
SELECT id, parent_id FROM jobs
 WHERE id = ANY ($10::uuid[]) AND {_MATCHES}
   AND ($9 = 'delete' OR jobs.children = 0)
   AND ($9 <> 'retry' OR jobs.unique_scope IS DISTINCT FROM 'active')
 ORDER BY id
   FOR UPDATE OF jobs SKIP LOCKED
"""  # noqa: S608 - made of constants

# Whatever is on the shelf has ended, and can be deleted from there.
_LOCK_SHELVED = f"""
SELECT id, parent_id FROM shelved_jobs AS jobs
 WHERE id = ANY ($10::uuid[]) AND {_MATCHES}
 ORDER BY id
   FOR UPDATE OF jobs SKIP LOCKED
"""  # noqa: S608 - made of constants


class Action(StrEnum):
    CANCEL = "cancel"
    RETRY = "retry"
    DELETE = "delete"

    @property
    def states(self) -> frozenset[State]:
        """The states of jobs that it can be applied to."""
        return _APPLIES_TO[self]


_APPLIES_TO = {
    Action.CANCEL: frozenset(State) - FINAL,
    Action.RETRY: RETRYABLE,
    Action.DELETE: FINAL,
}


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are meant: those that match all that is given."""

    states: Collection[State] = ()
    """Any of these; every state that the action applies to, unless given."""
    kind: str | None = None
    tenant: str | None = None
    queue: str | None = None
    error_code: str | None = None
    """The code of their last error. A job that waits for its next attempt has one too."""
    unique_key: str | None = None
    older_than: timedelta | None = None
    """They ended longer ago than this or, if they have not ended, were enqueued longer ago."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The jobs that an action is to be applied to. It begins now: jobs that are enqueued later are left alone."""

    lend: Lend
    arguments: tuple[Any, ...]
    """The parameters of `_MATCHES`."""

    @classmethod
    async def begin(cls, lend: Lend, action: Action, wanted: JobFilter) -> Selection:
        states = frozenset(wanted.states) or action.states
        if wrong := states - action.states:
            raise Refused(
                f"Jobs that are {', '.join(sorted(wrong))} cannot be chosen to {action}. "
                f"Choose from: {', '.join(sorted(action.states))}."
            )
        async with lend() as connection:
            began = await connection.fetchval("SELECT now()")
        age = wanted.older_than.total_seconds() if wanted.older_than is not None else None
        facts = (wanted.kind, wanted.tenant, wanted.queue, wanted.error_code, wanted.unique_key, age)
        return cls(lend, (sorted(states), *facts, began, action.value))

    async def ids(self, after: uuid.UUID = NIL, batch: int = _EXAMINED) -> AsyncIterator[list[uuid.UUID]]:
        """The jobs that match, in the order of their ids, a few at a time."""
        states = frozenset(self.arguments[0])
        looks = self._active(after) if states.isdisjoint(FINAL) else self._pages(after, states)
        async for found in looks:
            for first in range(0, len(found), batch):
                yield found[first : first + batch]

    async def _pages(self, after: uuid.UUID, states: frozenset[str]) -> AsyncIterator[list[uuid.UUID]]:
        statement = _PAGE_OF_DEAD_LETTERS if states == {State.DEAD_LETTER} else _PAGE
        while True:
            async with self.lend() as connection:
                page = await connection.fetchrow(statement, *self.arguments, after, _EXAMINED)
            assert page is not None, "sub-selects always answer"  # noqa: S101
            if page["last"] is None:
                return
            if page["ids"]:
                yield page["ids"]
            after = page["last"]

    async def _active(self, after: uuid.UUID) -> AsyncIterator[list[uuid.UUID]]:
        async with self.lend() as connection:
            found: bytes = await connection.fetchval(_ACTIVE, *self.arguments, after) or b""
        for start in range(0, len(found), 16 * _EXAMINED):
            page = found[start : start + 16 * _EXAMINED]
            yield [uuid.UUID(bytes=page[at : at + 16]) for at in range(0, len(page), 16)]

    async def lock(self, connection: Connection, job_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, uuid.UUID | None]:
        """Those of the jobs that can be changed together, with their parents. They are locked and still match."""
        found = await connection.fetch(_LOCK, *self.arguments, job_ids)
        if self.arguments[-1] == Action.DELETE and len(found) < len(job_ids):
            found += await connection.fetch(_LOCK_SHELVED, *self.arguments, job_ids)
        return {row["id"]: row["parent_id"] for row in found}

    async def matches(self, connection: Connection, job_id: uuid.UUID) -> bool:
        return bool(await connection.fetchval(_MATCHES_ONE, *self.arguments, job_id))
