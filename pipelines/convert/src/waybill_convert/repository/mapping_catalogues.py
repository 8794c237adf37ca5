"""The catalogues that jobs with `auto` are pinned to, by their hashes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from waybill_documents.mapping_files import MappingFiles

if TYPE_CHECKING:
    from waybill.db.database import Connection

# Written again at most once an hour: all uploads of a tenant name the same one.
_PIN = """
INSERT INTO mapping_catalogues AS known (sha256, entries, used_at) VALUES ($1, $2::text::jsonb, now())
    ON CONFLICT (sha256) DO UPDATE SET used_at = now() WHERE known.used_at < now() - interval '1 hour'
"""

_GET = "SELECT entries::text FROM mapping_catalogues WHERE sha256 = $1"

# Retired or not: a job that is pinned to one runs by it.
_FILES = """
SELECT mappings.name, mappings.sha256, document, schemas::text
  FROM unnest($2::text[], $3::text[]) AS pinned (name, sha256)
  JOIN mappings ON mappings.tenant IN ($1, '') AND mappings.name = pinned.name AND mappings.sha256 = pinned.sha256
 WHERE state <> 'draft'
"""

# Who uploads now has pinned it within the hour.
_UNUSED = """
SELECT sha256 FROM mapping_catalogues
 WHERE sha256 > $1 AND used_at < now() - interval '1 day'
   AND NOT EXISTS (SELECT FROM conversions WHERE mapping = 'auto' AND mapping_sha256 = mapping_catalogues.sha256)
 ORDER BY sha256 LIMIT $2
"""

_REMOVE = """
WITH removed AS (
    DELETE FROM mapping_catalogues
     WHERE sha256 = ANY ($1::text[]) AND used_at < now() - interval '1 day'
       AND NOT EXISTS (SELECT FROM conversions WHERE mapping = 'auto' AND mapping_sha256 = mapping_catalogues.sha256)
    RETURNING sha256
)
SELECT count(*) FROM removed
"""


async def pin(connection: Connection, sha256: str, entries: str) -> None:
    """Keep a catalogue, whose hash a job is about to name."""
    await connection.execute(_PIN, sha256, entries)


async def get(connection: Connection, sha256: str) -> str | None:
    """The entries of a catalogue."""
    found = await connection.fetchval(_GET, sha256)
    return str(found) if found is not None else None


async def files(
    connection: Connection, tenant: str, versions: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], MappingFiles]:
    """The files of these mappings, by name and hash, as far as they are the tenant's own or shared with it."""
    rows = await connection.fetch(_FILES, tenant, [name for name, _ in versions], [sha256 for _, sha256 in versions])
    return {(row["name"], row["sha256"]): MappingFiles(row["document"], json.loads(row["schemas"])) for row in rows}


async def unused(connection: Connection, after: str, limit: int) -> list[str]:
    """Catalogues that no conversion names any more, in order, after a hash."""
    return [row["sha256"] for row in await connection.fetch(_UNUSED, after, limit)]


async def remove(connection: Connection, hashes: Sequence[str]) -> int:
    """Remove those that are still unused; how many they were."""
    return int(await connection.fetchval(_REMOVE, list(hashes)))
