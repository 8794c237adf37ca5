"""A conversion's results: where many of them are, and what is noted of them in the conversion's row."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_convert.repository.conversions import NamedMapping

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

# What was read, not what a person made of it later. The newest, because the others expire before it.
_SAME = """
SELECT xml.storage_key AS xml_key, record.storage_key AS record_key
  FROM (SELECT job_id, status, mapping_sha256, loss, converted_by FROM conversions
         WHERE owner = $1 AND sha256 = $2 AND mapping = $3 AND bytes = $4 AND deleted_at IS NULL
        OFFSET 0) AS same
  JOIN job_artefacts AS xml ON xml.job_id = same.job_id AND xml.name = 'xml' AND xml.missing_at IS NULL
  JOIN job_artefacts AS record ON record.job_id = same.job_id AND record.name = 'provenance.json'
       AND record.missing_at IS NULL
 WHERE mapping_sha256 = $5 AND loss IS NOT DISTINCT FROM $6 AND converted_by = $7
   AND status IN ('complete', 'needs_review')
 ORDER BY same.job_id DESC
 LIMIT 1
"""

_DOWNLOADED = "UPDATE conversions SET downloaded_at = now() WHERE job_id = ANY ($1::uuid[]) AND downloaded_at IS NULL"

# What a person has corrected needs no other look, whatever becomes of another run of its job.
_NOTE = """
UPDATE conversions
   SET pages = $2, doubts = CASE WHEN revision = 0 THEN $3::text::jsonb END, approved_at = NULL, approved_by = NULL,
       converted_by = $4
 WHERE job_id = $1
RETURNING owner, doubts IS NOT NULL AS needs_review
"""

_WAITING = """
SELECT EXISTS (SELECT FROM conversions
                WHERE owner = $1 AND status = 'needs_review' AND deleted_at IS NULL AND listed_at IS NOT NULL)
"""


_NOTE_CHOICE = """
UPDATE conversions
   SET used_mapping = $2, used_sha256 = $3, recognition = $4::text::jsonb,
       changed = pg_current_xact_id(), changed_at = now()
 WHERE job_id = $1 AND mapping = 'auto'
"""


async def note_choice(connection: Connection, job_id: uuid.UUID, name: str, sha256: str, recognition: str) -> None:
    """Note which mapping a document chose, and why as JSON."""
    await connection.execute(_NOTE_CHOICE, job_id, name, sha256, recognition)


class NotedResult(NamedTuple):
    owner: str
    """Whose it is by now."""
    needs_review: bool


class SameResult(NamedTuple):
    """Where the result of the same document lies."""

    xml_key: str
    record_key: str


async def note_result(
    connection: Connection,
    job_id: uuid.UUID,
    pages: int,
    doubts: Mapping[str, Any] | None = None,
    *,
    converted_by: str | None = None,
) -> NotedResult | None:
    """Note how long the document was, which estimates and pages show, what is in doubt, and which release read it.

    Call it in the transaction that completes the job: a trigger then decides whether the conversion is complete.
    """
    row = await connection.fetchrow(_NOTE, job_id, pages, json.dumps(doubts) if doubts else None, converted_by)
    return NotedResult(*row) if row is not None else None


async def of_same_document(
    connection: Connection,
    owner: str,
    mapping: NamedMapping,
    *,
    sha256: str,
    size: int,
    converted_by: str,
) -> SameResult | None:
    """What the owner has of the same document, read by the same release with the same version of the mapping."""
    row = await connection.fetchrow(
        _SAME, owner, sha256, mapping.name, size, mapping.sha256, mapping.loss, converted_by
    )
    return SameResult(*row) if row is not None else None


async def wait_for_review(connection: Connection, owner: str) -> bool:
    """Whether there are results of an owner that nobody has looked at yet."""
    return bool(await connection.fetchval(_WAITING, owner))


async def ready(connection: Connection, owner: str) -> list[uuid.UUID]:
    """Everything in the owner's list that has a result, newest first."""
    return [row["job_id"] for row in await connection.fetch(_READY, owner)]


async def xml_of(connection: Connection, owner: str, job_ids: Sequence[uuid.UUID]) -> list[Any]:
    """The XML of each of these jobs, as it was last corrected, as far as they are the owner's and still there."""
    return await connection.fetch(_XML, owner, list(job_ids))


async def note_downloaded(connection: Connection, job_ids: Sequence[uuid.UUID]) -> None:
    await connection.execute(_DOWNLOADED, list(job_ids))
