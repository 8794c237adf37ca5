"""Unique keys: two jobs of one tenant and kind with the same key are the same job, within a scope.

Partial unique indexes keep the promise, so two callers at once create one job between them. `enqueue` asks here which
job has a key that is taken, and frees keys whose window has passed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from waybill.errors import Refused
from waybill.pg_text import is_storable

if TYPE_CHECKING:
    from waybill.db.database import Connection

_LONGEST = 10 * 366 * 86400.0

# Jobs are found by their keys but locked by their ids: whoever locks several jobs does so in the order of their ids.
_FREE_PASSED_WINDOWS = """
WITH passed AS MATERIALIZED (
    SELECT passed.id
      FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (tenant, kind, unique_key),
           LATERAL (
               SELECT id FROM jobs
                WHERE jobs.tenant = wanted.tenant AND jobs.kind = wanted.kind AND jobs.unique_key = wanted.unique_key
                  AND jobs.unique_scope IN ('window', 'forever') AND jobs.unique_until <= now()
                LIMIT 1
           ) AS passed
), locked AS MATERIALIZED (
    SELECT id FROM jobs
     WHERE id = ANY (ARRAY(SELECT id FROM passed)) AND unique_until <= now()
     ORDER BY id
       FOR UPDATE
)
UPDATE jobs SET unique_key = NULL, unique_scope = NULL, unique_until = NULL
 WHERE id = ANY (ARRAY(SELECT id FROM locked))
"""

# `window` and `forever` share one index, and so one name space; `active` has its own.
_FIND_EXISTING = """
SELECT wanted.position, existing.id
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
       WITH ORDINALITY AS wanted (tenant, kind, unique_key, unique_scope, position),
       LATERAL (
           SELECT id FROM jobs
            WHERE jobs.tenant = wanted.tenant AND jobs.kind = wanted.kind AND jobs.unique_key = wanted.unique_key
              AND jobs.unique_scope = 'active' AND jobs.state IN ('scheduled', 'queued', 'running')
              AND wanted.unique_scope = 'active'
           UNION ALL
           SELECT id FROM jobs
            WHERE jobs.tenant = wanted.tenant AND jobs.kind = wanted.kind AND jobs.unique_key = wanted.unique_key
              AND jobs.unique_scope IN ('window', 'forever')
              AND wanted.unique_scope IN ('window', 'forever')
       ) AS existing
"""


class UniqueScope(StrEnum):
    ACTIVE = "active"
    """One at a time: a new job may start once the old one has ended."""
    WINDOW = "window"
    """One per window, counted from the first."""
    FOREVER = "forever"
    """One, as long as its row is kept."""


@dataclass(frozen=True, slots=True)
class Unique:
    """What makes a job the same as another of its tenant and kind."""

    key: str
    scope: UniqueScope = UniqueScope.ACTIVE
    window: float | None = None
    """Seconds, for the scope `WINDOW`."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= 500 or not is_storable(self.key):
            raise Refused("A unique key must have 1 to 500 characters, none of them NUL.")
        if self.window is not None and not 0 < self.window <= _LONGEST:
            raise Refused("A unique key's window must be more than 0 seconds and at most ten years.")
        if (self.scope is UniqueScope.WINDOW) != (self.window is not None):
            raise Refused("The unique scope 'window' needs a window in seconds, and no other scope takes one.")


class WantedKey(NamedTuple):
    """The key that a new job asks for."""

    tenant: str
    kind: str
    unique: Unique


async def free_passed_windows(connection: Connection, wanted: Iterable[WantedKey]) -> None:
    """Take these keys from jobs whose window has passed."""
    kept = {(tenant, kind, unique.key) for tenant, kind, unique in wanted if unique.scope is not UniqueScope.ACTIVE}
    if kept:
        await connection.execute(_FREE_PASSED_WINDOWS, *(list(column) for column in zip(*sorted(kept), strict=True)))


async def find_existing(connection: Connection, wanted: Sequence[WantedKey]) -> Mapping[int, uuid.UUID]:
    """The jobs that have these keys already, by the position of the key in `wanted`."""
    rows = await connection.fetch(
        _FIND_EXISTING,
        [one.tenant for one in wanted],
        [one.kind for one in wanted],
        [one.unique.key for one in wanted],
        [one.unique.scope.value for one in wanted],
    )
    return {row["position"] - 1: row["id"] for row in rows}
