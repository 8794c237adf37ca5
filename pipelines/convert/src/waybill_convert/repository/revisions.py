"""All SQL on `revisions`. Who may see a conversion is looked at before (`repository`); saving looks again."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waybill_convert.revision_models import Json, Revision
from waybill_engine import control
from waybill_engine.artefacts import Published, published
from waybill_engine.job_locks import share_job

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill.storage import Stored

# The number decides who is first. What waits for a person goes on doing so: the caller approves it.
_SAVE = """
WITH moved AS (
    UPDATE conversions
       SET revision = $3, status = CASE WHEN status = 'failed' THEN 'complete' ELSE status END,
           changed = pg_current_xact_id(), changed_at = now()
     WHERE job_id = $1 AND owner = $2 AND revision = $3 - 1 AND status IN ('complete', 'needs_review', 'failed')
       AND deleted_at IS NULL
    RETURNING job_id
)
INSERT INTO revisions (job_id, number, created_at, author, changes, accepted, xml_key, xml_bytes, xml_sha256,
                       record_key, record_bytes, record_sha256)
SELECT job_id, $3, now(), $4, $5::text::jsonb, $6::text::jsonb, $7, $8, $9, $10, $11, $12 FROM moved
RETURNING number, created_at, author, changes, accepted
"""

_LIST = """
SELECT number, created_at, author, changes, accepted FROM revisions
 WHERE job_id = $1 AND number > $2 ORDER BY number
"""

_FILE = """
SELECT xml_key AS storage_key, 'application/xml' AS media_type, xml_bytes AS bytes, xml_sha256 AS sha256
  FROM revisions WHERE job_id = $1 AND number = $2 AND $3 = 'xml'
 UNION ALL
SELECT record_key, 'application/json', record_bytes, record_sha256
  FROM revisions WHERE job_id = $1 AND number = $2 AND $3 = 'provenance.json'
"""

# What is deleted takes its corrections along: both counts are of what is still there.
_CONVERTED = """
SELECT count(*) FROM conversions
 WHERE mapping = $1 AND deleted_at IS NULL AND status IN ('complete', 'needs_review', 'expired', 'failed')
"""

# The latest examples first: they are what the mapping gets wrong today.
_CORRECTED = """
SELECT change ->> 'rule' AS rule, count(*) AS corrections, count(DISTINCT revisions.job_id) AS documents,
       to_json((array_agg(json_build_object('path', change -> 'path', 'from', change -> 'from', 'to', change -> 'to')
                          ORDER BY revisions.created_at DESC, revisions.job_id, ordinal))[1:$2]) AS examples
  FROM conversions
  JOIN revisions ON revisions.job_id = conversions.job_id,
       LATERAL jsonb_array_elements(revisions.changes) WITH ORDINALITY AS changes (change, ordinal)
 WHERE COALESCE(conversions.used_mapping, conversions.mapping) = $1 AND conversions.deleted_at IS NULL
 GROUP BY 1
 ORDER BY documents DESC, corrections DESC, rule
"""


async def save(
    connection: Connection,
    job_id: uuid.UUID,
    owner: str,
    number: int,
    *,
    author: str,
    changes: Sequence[Json],
    accepted: Sequence[Json] | None,
    xml: Stored,
    record: Stored,
) -> Revision | None:
    """Make it the latest revision, if `number` - 1 still is the latest and the job is where it can be corrected.

    Call it in a transaction.
    """
    # The job is locked first, as by everybody who moves or deletes it: a job that is being deleted gets no revision
    # that nobody would delete, and one that runs again none of what it read before.
    if await share_job(connection, job_id) is None:
        return None
    row = await connection.fetchrow(
        _SAVE,
        job_id,
        owner,
        number,
        author,
        json.dumps(changes),
        json.dumps(accepted) if accepted else None,
        xml.key,
        xml.bytes,
        xml.sha256,
        record.key,
        record.bytes,
        record.sha256,
    )
    if row is None:
        return None
    await control.note(connection, job_id, "corrected", f"Revision {number} by {author}")
    return _revision(row)


async def ls(connection: Connection, job_id: uuid.UUID, *, after: int = 0) -> list[Revision]:
    """In the order they were made in."""
    return [_revision(row) for row in await connection.fetch(_LIST, job_id, after)]


async def file(connection: Connection, job_id: uuid.UUID, number: int, name: str) -> Published | None:
    """Where a revision's file is; of revision 0, the job's artefact."""
    if number == 0:
        return await published(connection, job_id, name)
    row = await connection.fetchrow(_FILE, job_id, number, name)
    return Published(*row) if row is not None else None


async def converted(connection: Connection, mapping: str) -> int:
    """How many documents went through a mapping."""
    return int(await connection.fetchval(_CONVERTED, mapping))


async def corrected(connection: Connection, mapping: str, *, examples: int) -> list[Json]:
    """Which of its rules were corrected: how often, in how many documents, and the latest from what to what."""
    rows = await connection.fetch(_CORRECTED, mapping, examples)
    return [{**row, "examples": json.loads(row["examples"])} for row in rows]


def _revision(row: Any) -> Revision:
    accepted = json.loads(row["accepted"]) if row["accepted"] else None
    return Revision(row["number"], row["created_at"], row["author"], json.loads(row["changes"]), accepted)
