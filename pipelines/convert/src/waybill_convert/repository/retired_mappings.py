"""Retired mappings that nothing names any more, which the janitor removes.

A version is named by jobs, by the catalogues of jobs with `auto`, and by jobs that were enqueued by the name of their
kind and never ran, which have no row of their own yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from waybill.db.database import Connection

# A job without a hash runs by whatever has the name that it gives, and what waits without a row has only a payload.
# Hashes are compared whoever's the job is: nothing is lost by keeping one version too long. Whether a conversion is
# deleted is looked at last, or the planner might go through all that are not.
_UNNAMED = """
       state = 'retired' AND retired_at <= now() - $1::float8 * interval '1 day'
   AND NOT EXISTS (SELECT FROM tenants WHERE tenants.name = mappings.tenant AND hold_at IS NOT NULL)
   AND NOT EXISTS (SELECT FROM (
           SELECT deleted_at FROM conversions
            WHERE COALESCE(used_sha256, mapping_sha256, mapping) = ANY (ARRAY[mappings.sha256, mappings.name])
           OFFSET 0) AS named WHERE deleted_at IS NULL)
   AND (mappings.name, mappings.sha256) NOT IN (
           SELECT entry ->> 0, entry ->> 1 FROM mapping_catalogues, jsonb_array_elements(entries) AS entry)
   AND mappings.name NOT IN (
           SELECT payload ->> 'mapping' FROM jobs WHERE kind = 'convert_pdf' AND payload ->> 'mapping' IS NOT NULL)
"""

_FIND = f"""
SELECT tenant, name FROM mappings
 WHERE (tenant, name) > ($2, $3) AND {_UNNAMED}
 ORDER BY tenant, name LIMIT $4
"""  # noqa: S608 - made of constants

# The trigger that keeps published mappings as they are lets go of a tenant's when the transaction says whose it means.
_MEAN = "SELECT set_config('waybill.erases', $1, true)"

_REMOVE = f"""
DELETE FROM mappings WHERE tenant = $2 AND name = ANY ($3::text[]) AND {_UNNAMED} RETURNING name, sha256
"""  # noqa: S608 - made of constants


class RetiredMapping(NamedTuple):
    tenant: str
    name: str


class RemovedMapping(NamedTuple):
    name: str
    sha256: str


async def unnamed(connection: Connection, days: float, after: RetiredMapping, limit: int) -> list[RetiredMapping]:
    """Those that were retired so many days ago and that nothing names, in order, after one of them."""
    return [RetiredMapping(*row) for row in await connection.fetch(_FIND, days, *after, limit)]


async def remove(connection: Connection, days: float, tenant: str, names: Sequence[str]) -> list[RemovedMapping]:
    """Remove those of a tenant that still are so, in the caller's transaction. Triggers let go of their samples."""
    await connection.execute(_MEAN, tenant)
    return [RemovedMapping(*row) for row in await connection.fetch(_REMOVE, days, tenant, list(names))]
