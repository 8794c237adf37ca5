"""The rows of `batch_files`: they come in with the unpacked ZIP, are worked by jobs, and end."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from waybill_batches.models import FileEnd, KnownResult, StoredSource, WorkFile
from waybill_batches.status import FileStatus

if TYPE_CHECKING:
    from waybill.db.database import Connection

_COLUMNS = (
    "batch_id",
    "number",
    "owner",
    "doc_id",
    "path",
    "type",
    "bytes",
    "sha256",
    "mapping",
    "twin_of",
    "status",
    "job_id",
    "error",
    "finished_at",
    "source_key",
    "source_at",
)

# An earlier run of the job may have inserted some, if the ZIP is unpacked anew.
_REMOVE_ALL = "DELETE FROM batch_files WHERE batch_id = $1"

_OF_JOB = """
SELECT number, path, type, sha256, tries, source_key, source_at, bytes FROM batch_files
 WHERE job_id = $1 AND batch_id = $2 AND twin_of IS NULL AND status = 'queued'
 ORDER BY number
"""

_KNOWN = """
SELECT DISTINCT ON (sha256) sha256, result_key, result_at, result_bytes, milliseconds, extractor,
       amounts::text AS amounts
  FROM batch_files
 WHERE owner = $1 AND sha256 = ANY ($2::text[]) AND extractor = ANY ($3::text[]) AND result_key IS NOT NULL
 ORDER BY sha256, array_position($3::text[], extractor), batch_id DESC
"""

_END = """
UPDATE batch_files
   SET status = CASE WHEN ended.error IS NULL THEN 'complete' ELSE 'failed' END, error = ended.error::jsonb,
       milliseconds = ended.milliseconds, reused = ended.reused, tries = tries + $8, finished_at = now(),
       result_key = CASE WHEN ended.at IS NOT NULL THEN $9 END, result_at = ended.at, result_bytes = ended.size,
       extractor = ended.extractor, amounts = ended.amounts::jsonb
  FROM unnest($2::int[], $3::real[], $4::text[], $5::bigint[], $6::bigint[], $7::bool[], $10::text[], $11::text[])
       AS ended (number, milliseconds, error, at, size, reused, extractor, amounts)
 WHERE batch_id = $1 AND batch_files.number = ANY ($2::int[]) AND batch_files.number = ended.number
   AND status = 'queued'
"""

# What was worked for one file of the batch counts for each that has the same content.
_END_TWINS = """
UPDATE batch_files AS twin
   SET status = first.status, error = first.error, milliseconds = first.milliseconds, tries = first.tries,
       finished_at = now(), reused = first.status IN ('complete', 'needs_review'), amounts = first.amounts,
       result_key = first.result_key, result_at = first.result_at, result_bytes = first.result_bytes,
       xml_key = first.xml_key, xml_bytes = first.xml_bytes
  FROM batch_files AS first
 WHERE twin.batch_id = $1 AND twin.twin_of = ANY ($2::int[])
   AND first.batch_id = $1 AND first.number = twin.twin_of
"""

_OWNED_BY_JOB = "SELECT batch_id, owner FROM batch_files WHERE job_id = $1 LIMIT 1"

# A job that ended without having written its files' ends. Its row has the reason.
_END_WITH_JOB = """
UPDATE batch_files
   SET status = $2, finished_at = now(), tries = tries + GREATEST(jobs.attempts - 1, 0),
       error = jsonb_build_object('code', COALESCE(jobs.error_code, 'UNKNOWN'), 'message', jobs.error_message,
                                  'key', jobs.error_detail -> 'key', 'params', jobs.error_detail -> 'params')
  FROM jobs
 WHERE batch_files.job_id = $1 AND twin_of IS NULL AND status = 'queued' AND jobs.id = $1
RETURNING number
"""

_CANCEL_REST = """
UPDATE batch_files SET status = 'cancelled', finished_at = now() WHERE batch_id = $1 AND status = 'queued'
"""

# What another pipeline tells of its job. A person may have it worked again at any time, so its present state counts.
# What a person did to a result later is not the time that its work took.
_NOTE_CONVERTED = """
UPDATE batch_files
   SET status = $2, error = NULL, finished_at = now(),
       milliseconds = CASE WHEN jobs.state = 'running' THEN extract(epoch FROM now() - jobs.started_at) * 1000
                           ELSE milliseconds END,
       amounts = COALESCE($3::text::jsonb, amounts),
       result_key = COALESCE($4, result_key), result_at = NULL, result_bytes = COALESCE($5, result_bytes),
       xml_key = COALESCE($6, xml_key), xml_bytes = COALESCE($7, xml_bytes), reused = COALESCE($8, reused)
  FROM jobs
 WHERE batch_files.job_id = $1 AND twin_of IS NULL AND jobs.id = $1
RETURNING number
"""

_NOTE_GONE = """
UPDATE batch_files
   SET status = 'expired', result_key = NULL, xml_key = NULL
 WHERE job_id = $1 AND status IN ('complete', 'needs_review')
RETURNING number
"""

_TO_RETRY = """
SELECT number, path, type, bytes, sha256, mapping, tries, source_key, source_at, extractor IS NOT NULL AS extracted
  FROM batch_files
 WHERE batch_id = $1 AND twin_of IS NULL AND status IN ('failed', 'cancelled')
   AND (source_key IS NOT NULL OR extractor IS NOT NULL)
 ORDER BY number
"""

# What was extracted of a file that only a language model failed is kept: it need not be extracted again.
_AGAIN = """
UPDATE batch_files
   SET status = 'queued', job_id = again.job_id, error = NULL, finished_at = NULL, tries = tries + 1,
       milliseconds = CASE WHEN extractor IS NOT NULL THEN milliseconds END,
       result_key = CASE WHEN extractor IS NOT NULL THEN result_key END,
       result_at = CASE WHEN extractor IS NOT NULL THEN result_at END,
       result_bytes = CASE WHEN extractor IS NOT NULL THEN result_bytes END,
       xml_key = NULL, xml_bytes = NULL, amounts = NULL, reused = false
  FROM unnest($2::int[], $3::uuid[]) AS again (number, job_id)
 WHERE batch_id = $1 AND COALESCE(twin_of, batch_files.number) = again.number AND status IN ('failed', 'cancelled')
"""


class NewFile(NamedTuple):
    """A row as it begins, in the order of the columns."""

    batch_id: uuid.UUID
    number: int
    owner: str
    doc_id: str
    path: str
    type: str
    bytes: int
    sha256: str
    mapping: str | None
    twin_of: int | None
    status: str
    job_id: uuid.UUID | None
    error: str | None
    finished_at: Any
    source_key: str | None
    source_at: int | None


class FileToRetry(NamedTuple):
    number: int
    path: str
    type: str
    bytes: int
    sha256: str
    mapping: str | None
    tries: int
    source_key: str | None
    source_at: int | None
    extracted: bool
    """Its text is known, and only the language model has still to see it."""


class FilesOfJob(NamedTuple):
    """Whose the files are that a job works, and of which batch."""

    batch_id: uuid.UUID
    owner: str


async def replace_all(connection: Connection, batch_id: uuid.UUID, files: Sequence[NewFile]) -> None:
    """Make these the batch's files."""
    await connection.execute(_REMOVE_ALL, batch_id)
    await connection.copy_records_to_table("batch_files", records=files, columns=_COLUMNS)


async def of_job(connection: Connection, batch_id: uuid.UUID, job_id: uuid.UUID) -> list[WorkFile]:
    """The files that a job has still to work."""
    return [
        WorkFile(
            row["number"],
            row["path"],
            row["type"],
            row["sha256"],
            row["tries"],
            StoredSource(row["source_key"], row["source_at"], row["bytes"]),
        )
        for row in await connection.fetch(_OF_JOB, job_id, batch_id)
    ]


async def known_results(
    connection: Connection, owner: str, hashes: Sequence[str], extractors: Sequence[str]
) -> dict[str, KnownResult]:
    """Results that the owner has of files with these hashes, of the first of these extractors that made one."""
    return {
        row["sha256"]: KnownResult(
            row["result_key"],
            row["result_at"] or 0,
            row["result_bytes"],
            row["milliseconds"] or 0,
            row["extractor"],
            row["amounts"],
        )
        for row in await connection.fetch(_KNOWN, owner, hashes, extractors)
    }


async def end(
    connection: Connection,
    batch_id: uuid.UUID,
    ends: Sequence[FileEnd],
    *,
    tries: int,
    result_key: str | None,
) -> None:
    """Write how files ended, and with them their twins."""
    numbers = [one.number for one in ends]
    await connection.execute(
        _END,
        batch_id,
        numbers,
        [one.milliseconds for one in ends],
        [json.dumps(one.error) if one.error is not None else None for one in ends],
        [one.at for one in ends],
        [one.bytes for one in ends],
        [one.reused for one in ends],
        tries,
        result_key,
        [one.extractor for one in ends],
        [one.amounts for one in ends],
    )
    await connection.execute(_END_TWINS, batch_id, numbers)


async def owned_by_job(connection: Connection, job_id: uuid.UUID) -> FilesOfJob | None:
    """The files of a job, of whatever kind; None if it has none of ours."""
    row = await connection.fetchrow(_OWNED_BY_JOB, job_id)
    return FilesOfJob(*row) if row is not None else None


async def end_with_job(connection: Connection, files: FilesOfJob, job_id: uuid.UUID, status: FileStatus) -> bool:
    """Write that files ended because their job did. False if they had ended before."""
    ended = [row["number"] for row in await connection.fetch(_END_WITH_JOB, job_id, status)]
    if ended:
        await connection.execute(_END_TWINS, files.batch_id, ended)
    return bool(ended)


async def cancel_rest(connection: Connection, batch_id: uuid.UUID) -> None:
    """Nothing more of the batch is worked."""
    await connection.execute(_CANCEL_REST, batch_id)


async def note_converted(
    connection: Connection,
    files: FilesOfJob,
    job_id: uuid.UUID,
    status: FileStatus,
    *,
    amounts: Mapping[str, Any] | None,
    record: tuple[str, int] | None,
    xml: tuple[str, int] | None,
    reused: bool | None,
) -> None:
    """Write what another pipeline made of a file: where its record and its XML lie, with their bytes."""
    rows = await connection.fetch(
        _NOTE_CONVERTED,
        job_id,
        status,
        json.dumps(amounts) if amounts is not None else None,
        *(record or (None, None)),
        *(xml or (None, None)),
        reused,
    )
    if rows:
        await connection.execute(_END_TWINS, files.batch_id, [row["number"] for row in rows])


async def note_gone(connection: Connection, files: FilesOfJob, job_id: uuid.UUID) -> None:
    """Write that another pipeline has removed its result."""
    if gone := [row["number"] for row in await connection.fetch(_NOTE_GONE, job_id)]:
        await connection.execute(_END_TWINS, files.batch_id, gone)


async def to_retry(connection: Connection, batch_id: uuid.UUID) -> list[FileToRetry]:
    """The files that failed or were cancelled, and whose content is known."""
    return [FileToRetry(**row) for row in await connection.fetch(_TO_RETRY, batch_id)]


async def again(connection: Connection, batch_id: uuid.UUID, jobs: Mapping[int, uuid.UUID]) -> None:
    """Have files worked again, each by the given job."""
    await connection.execute(_AGAIN, batch_id, list(jobs), list(jobs.values()))
