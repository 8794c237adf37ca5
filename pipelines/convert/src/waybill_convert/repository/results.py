"""A conversion's results: where many of them are, and what is noted of them in the conversion's row."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from waybill.db.database import Connection

_READY = """
SELECT job_id FROM conversions
 WHERE owner = $1 AND status = 'complete' AND deleted_at IS NULL AND listed_at IS NOT NULL
 ORDER BY listed_at DESC, job_id DESC
"""

_XML = """
SELECT conversions.job_id, conversions.original_name,
       COALESCE(revisions.xml_key, job_artefacts.storage_key) AS storage_key,
       COALESCE(revisions.xml_bytes, job_artefacts.bytes) AS bytes
  FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (job_id, place)
  JOIN conversions ON conversions.job_id = wanted.job_id
  LEFT JOIN revisions ON revisions.job_id = conversions.job_id AND revisions.number = conversions.revision
  LEFT JOIN job_artefacts ON job_artefacts.job_id = conversions.job_id AND job_artefacts.name = 'xml'
 WHERE conversions.owner = $1 AND conversions.status = 'complete' AND conversions.deleted_at IS NULL
   AND COALESCE(revisions.xml_key, job_artefacts.storage_key) IS NOT NULL
 ORDER BY wanted.place
"""

_DOWNLOADED = "UPDATE conversions SET downloaded_at = now() WHERE job_id = ANY ($1::uuid[]) AND downloaded_at IS NULL"

_NOTE = "UPDATE conversions SET pages = $2 WHERE job_id = $1 RETURNING owner"


_NOTE_CHOICE = """
UPDATE conversions
   SET used_mapping = $2, used_sha256 = $3, recognition = $4::text::jsonb,
       changed = pg_current_xact_id(), changed_at = now()
 WHERE job_id = $1 AND mapping = 'auto'
"""


async def note_choice(connection: Connection, job_id: uuid.UUID, name: str, sha256: str, recognition: str) -> None:
    """Note which mapping a document chose, and why as JSON."""
    await connection.execute(_NOTE_CHOICE, job_id, name, sha256, recognition)


async def note_result(connection: Connection, job_id: uuid.UUID, pages: int) -> str | None:
    """Note how long the document was; estimates and pages show it. The answer is whose it is by now."""
    owner = await connection.fetchval(_NOTE, job_id, pages)
    return str(owner) if owner is not None else None


async def ready(connection: Connection, owner: str) -> list[uuid.UUID]:
    """Everything in the owner's list that has a result, newest first."""
    return [row["job_id"] for row in await connection.fetch(_READY, owner)]


async def xml_of(connection: Connection, owner: str, job_ids: Sequence[uuid.UUID]) -> list[Any]:
    """The XML of each of these jobs, as it was last corrected, as far as they are the owner's and still there."""
    return await connection.fetch(_XML, owner, list(job_ids))


async def note_downloaded(connection: Connection, job_ids: Sequence[uuid.UUID]) -> None:
    await connection.execute(_DOWNLOADED, list(job_ids))
