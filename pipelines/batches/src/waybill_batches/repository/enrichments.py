"""The rows of files that wait for a language model: extracted, and not done yet."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from waybill_batches.models import FileEnd

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_batches.file_jobs import FileJob

# The row stays `queued`, and remembers what was extracted: nobody extracts it again, whatever becomes of the rest.
_AWAIT = """
UPDATE batch_files
   SET job_id = extracted.job_id, milliseconds = extracted.milliseconds, reused = extracted.reused, tries = tries + $7,
       result_key = $8, result_at = extracted.at, result_bytes = extracted.size, extractor = extracted.extractor
  FROM unnest($2::int[], $3::uuid[], $4::real[], $5::bigint[], $6::bigint[], $9::bool[], $10::text[])
       AS extracted (number, job_id, milliseconds, at, size, reused, extractor)
 WHERE batch_id = $1 AND batch_files.number = ANY ($2::int[]) AND batch_files.number = extracted.number
   AND status = 'queued'
"""

_TWINS_FOLLOW = """
UPDATE batch_files AS twin
   SET job_id = first.job_id
  FROM batch_files AS first
 WHERE twin.batch_id = $1 AND twin.twin_of = ANY ($2::int[]) AND twin.status = 'queued'
   AND first.batch_id = $1 AND first.number = twin.twin_of
"""

_TO_ENRICH = """
SELECT number, sha256, milliseconds, result_key, result_at, result_bytes FROM batch_files
 WHERE job_id = $1 AND batch_id = $2 AND twin_of IS NULL AND status = 'queued' AND result_key IS NOT NULL
"""

_FORGET_EXTRACTED = """
UPDATE batch_files SET result_key = NULL, result_at = NULL, result_bytes = NULL, extractor = NULL
 WHERE batch_id = ANY ($1::uuid[]) AND status IN ('failed', 'cancelled') AND extractor IS NOT NULL
"""


class ExtractedFile(NamedTuple):
    """A file whose text is known, and where that lies."""

    number: int
    sha256: str
    milliseconds: float
    key: str
    at: int
    bytes: int


async def await_model(
    connection: Connection,
    batch_id: uuid.UUID,
    extracted: Sequence[FileEnd],
    jobs: Mapping[int, FileJob],
    *,
    tries: int,
    result_key: str,
) -> None:
    """Write what was extracted, and which jobs go on with it."""
    numbers = [one.number for one in extracted]
    await connection.execute(
        _AWAIT,
        batch_id,
        numbers,
        [jobs[number].id for number in numbers],
        [one.milliseconds for one in extracted],
        [one.at for one in extracted],
        [one.bytes for one in extracted],
        tries,
        result_key,
        [one.reused for one in extracted],
        [one.extractor for one in extracted],
    )
    await connection.execute(_TWINS_FOLLOW, batch_id, numbers)


async def to_enrich(connection: Connection, batch_id: uuid.UUID, job_id: uuid.UUID) -> ExtractedFile | None:
    """The file that a job has to enrich; None if that is done."""
    row = await connection.fetchrow(_TO_ENRICH, job_id, batch_id)
    if row is None:
        return None
    return ExtractedFile(
        row["number"],
        row["sha256"],
        row["milliseconds"] or 0.0,
        row["result_key"],
        row["result_at"] or 0,
        row["result_bytes"],
    )


async def forget_extracted(connection: Connection, batch_ids: Sequence[uuid.UUID]) -> None:
    """What was extracted of files that were never enriched is no longer stored."""
    await connection.execute(_FORGET_EXTRACTED, batch_ids)
