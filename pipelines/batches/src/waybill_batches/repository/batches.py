"""The rows of `batches`: one comes in with a ZIP, is worked in runs, ends, and is handed over."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from waybill.errors import Expired
from waybill.messages import msg
from waybill_batches.mapping_rules import MappingRules
from waybill_batches.models import ReceivedZip
from waybill_batches.status import REUSABLE, BatchStatus
from waybill_engine import control
from waybill_engine.job_locks import lock_jobs

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill.security import Principal

_LOCK_SAME = "SELECT pg_advisory_xact_lock(hashtextextended('batch ' || $1 || ' ' || $2, 0))"

_SAME = """
SELECT id FROM batches
 WHERE owner = $1 AND fingerprint = $2 AND status = ANY ($3::text[])
 ORDER BY id DESC
 LIMIT 1
"""

_INSERT = """
WITH told AS (SELECT waybill_tell($3))
INSERT INTO batches (id, tenant, owner, name, source_name, bytes, sha256, rules, wanted, fingerprint, source_key,
                     run_job, all_runs)
SELECT $1::uuid, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9::text::jsonb, $10, $11, $1, ARRAY[$1::uuid] FROM told
"""

_TO_WORK = """
SELECT id, tenant, owner, name, bytes, sha256, rules::text AS rules, wanted::text AS wanted, source_key, run, run_job,
       status, unpacked_at IS NOT NULL AS unpacked
  FROM batches WHERE id = $1
"""

_LOCK = "SELECT status FROM batches WHERE id = $1 FOR UPDATE"

_SHARE = "SELECT FROM batches WHERE id = $1 FOR SHARE"

_BEGIN = f"""
WITH begun AS (
    UPDATE batches SET status = '{BatchStatus.PROCESSING}', changed = pg_current_xact_id(), changed_at = now()
     WHERE id = $1 AND status = '{BatchStatus.QUEUED}'
    RETURNING owner
)
SELECT waybill_tell(owner) FROM begun
"""  # noqa: S608 - made of constants

# Its files are stored one by one from now on.
_UNPACKED = """
UPDATE batches
   SET unpacked_at = now(), source_deleted_at = COALESCE(source_deleted_at, now()), error = NULL,
       changed = pg_current_xact_id(), changed_at = now()
 WHERE id = $1
"""

_REFUSED = """
UPDATE batches SET error = $2::text::jsonb, changed = pg_current_xact_id(), changed_at = now() WHERE id = $1
"""

# A batch that is summed up again had ended before: its age counts from then.
_END = """
WITH ended AS (
    UPDATE batches
       SET status = $2, counts = $3::text::jsonb, summary = $4::text::jsonb, finished_at = COALESCE(finished_at, now()),
           changed = pg_current_xact_id(), changed_at = now()
     WHERE id = $1
    RETURNING owner
)
SELECT waybill_tell(owner) FROM ended
"""

_RECOUNT = """
UPDATE batches
   SET counts = (SELECT jsonb_object_agg(status, number) || jsonb_build_object('files', sum(number))
                   FROM (SELECT status, count(*) AS number FROM batch_files
                          WHERE batch_id = batches.id GROUP BY status) AS counted),
       changed = pg_current_xact_id(), changed_at = now()
 WHERE id = ANY ($1::uuid[]) AND status NOT IN ('queued', 'processing')
"""

_BEGIN_RUN = """
WITH begun AS (
    UPDATE batches
       SET status = CASE WHEN unpacked_at IS NULL THEN 'queued' ELSE 'processing' END, run = run + 1, run_job = $2,
           all_runs = array_append(all_runs, $2::uuid), error = NULL, finished_at = NULL,
           changed = pg_current_xact_id(), changed_at = now()
     WHERE id = $1
    RETURNING owner
)
SELECT waybill_tell(owner) FROM begun
"""

# Its files are as they are; only what the batch as a whole says is missing.
_END_WITHOUT_SUMMARY = """
WITH ended AS (
    UPDATE batches
       SET status = $2, summary = NULL, finished_at = now(), changed = pg_current_xact_id(), changed_at = now(),
           counts = (SELECT jsonb_object_agg(status, number) || jsonb_build_object('files', sum(number))
                       FROM (SELECT status, count(*) AS number FROM batch_files
                              WHERE batch_id = $1 GROUP BY status) AS counted)
     WHERE id = $1
    RETURNING owner
)
SELECT waybill_tell(owner) FROM ended
"""

# The job's row says why.
_UNPACKING_FAILED = """
UPDATE batches
   SET error = COALESCE(batches.error, jsonb_build_object(
           'code', COALESCE(jobs.error_code, 'UNKNOWN'), 'message', jobs.error_message,
           'key', jobs.error_detail -> 'key', 'params', jobs.error_detail -> 'params')),
       changed = pg_current_xact_id(), changed_at = now()
  FROM jobs
 WHERE jobs.id = $1 AND batches.run_job = jobs.parent_id
"""

_TELL = "SELECT waybill_tell($1)"

_OWNER = "SELECT owner FROM batches WHERE id = $1"

_OF_RUN_JOB = "SELECT id FROM batches WHERE run_job = $1"

_NOTE_RUN = "UPDATE batches SET all_runs = array_append(all_runs, $2::uuid) WHERE id = $1"

_OWNED = "SELECT id, all_runs FROM batches WHERE owner = $1"

_ADOPT = """
WITH adopted AS (
    UPDATE batches SET owner = $2, changed = pg_current_xact_id(), changed_at = now()
     WHERE id = ANY ($3::uuid[]) AND owner = $1
    RETURNING id
), files AS (
    UPDATE batch_files SET owner = $2 FROM adopted WHERE batch_id = adopted.id
)
SELECT ARRAY(SELECT id FROM adopted) AS batches, waybill_tell($1), waybill_tell($2)
"""

_FAMILIES = """
SELECT unnest($1::uuid[]) AS id
 UNION
SELECT id FROM all_jobs WHERE parent_id = ANY ($1::uuid[])
 UNION
SELECT job_id FROM batch_files WHERE batch_id = ANY ($2::uuid[]) AND job_id IS NOT NULL
"""


class BatchToWork(NamedTuple):
    """What a job needs to know of its batch."""

    id: uuid.UUID
    tenant: str
    owner: str
    name: str
    bytes: int
    sha256: str
    rules: MappingRules
    wanted: dict[str, Any] | None
    source_key: str
    run: int
    run_job: uuid.UUID
    status: BatchStatus
    unpacked: bool


async def find_same(connection: Connection, owner: str, fingerprint: str) -> uuid.UUID | None:
    """The owner's batch of the same request, if it is still good for it. Until then nobody makes one."""
    await connection.execute(_LOCK_SAME, owner, fingerprint)
    found = await connection.fetchval(_SAME, owner, fingerprint, list(REUSABLE))
    return uuid.UUID(str(found)) if found is not None else None


async def insert(
    connection: Connection,
    principal: Principal,
    received: ReceivedZip,
    *,
    name: str,
    rules: MappingRules,
    wanted: Mapping[str, Any] | None,
    fingerprint: str,
) -> None:
    await connection.execute(
        _INSERT,
        received.batch_id,
        principal.tenant,
        principal.owner,
        name,
        received.name,
        received.bytes,
        received.sha256,
        json.dumps(rules.as_json()),
        json.dumps(wanted) if wanted is not None else None,
        fingerprint,
        received.key,
    )


async def to_work(connection: Connection, batch_id: uuid.UUID) -> BatchToWork | None:
    """None if it was deleted meanwhile."""
    row = await connection.fetchrow(_TO_WORK, batch_id)
    if row is None:
        return None
    found = dict(row)
    found["rules"] = MappingRules.of(json.loads(found["rules"]))
    found["wanted"] = json.loads(found["wanted"]) if found["wanted"] is not None else None
    found["status"] = BatchStatus(found["status"])
    return BatchToWork(**found)


async def lock(connection: Connection, batch_id: uuid.UUID) -> BatchStatus | None:
    """Lock the row until the transaction ends: its state changes only under this lock. None if it is gone."""
    status = await connection.fetchval(_LOCK, batch_id)
    return BatchStatus(status) if status is not None else None


async def share(connection: Connection, batch_id: uuid.UUID) -> None:
    """Lock the row together with others who change files of the batch: none of them is missed when it is summed up."""
    await connection.execute(_SHARE, batch_id)


async def begin(connection: Connection, batch_id: uuid.UUID) -> None:
    """Its first job runs."""
    await connection.execute(_BEGIN, batch_id)


async def note_unpacked(connection: Connection, batch_id: uuid.UUID) -> None:
    await connection.execute(_UNPACKED, batch_id)


async def note_refused(connection: Connection, batch_id: uuid.UUID, error: Mapping[str, Any]) -> None:
    """Say why the ZIP as a whole cannot be worked."""
    await connection.execute(_REFUSED, batch_id, json.dumps(error))


async def end(
    connection: Connection,
    batch_id: uuid.UUID,
    status: BatchStatus,
    counts: Mapping[str, int],
    summary: Mapping[str, Any] | None,
) -> None:
    written = json.dumps(summary) if summary is not None else None
    await connection.execute(_END, batch_id, status, json.dumps(counts), written)


async def end_without_summary(connection: Connection, batch_id: uuid.UUID, status: BatchStatus) -> None:
    await connection.execute(_END_WITHOUT_SUMMARY, batch_id, status)


async def recount(connection: Connection, batch_ids: Sequence[uuid.UUID]) -> None:
    """Count the files of batches that have ended once more: some of them lost their results."""
    await connection.execute(_RECOUNT, batch_ids)


async def note_unpacking_failed(connection: Connection, job_id: uuid.UUID) -> None:
    """A ZIP's `process_batch` ended without success, and its row says why."""
    await connection.execute(_UNPACKING_FAILED, job_id)


async def tell(connection: Connection, owner: str) -> None:
    """Whoever follows the owner's batches looks again."""
    await connection.execute(_TELL, owner)


async def owner(connection: Connection, batch_id: uuid.UUID) -> str:
    """Whose it is at this moment. Expired if it was deleted meanwhile."""
    found = await connection.fetchval(_OWNER, batch_id)
    if found is None:
        raise Expired(msg("batches.gone"))
    return str(found)


async def begin_run(connection: Connection, batch_id: uuid.UUID, run_job: uuid.UUID) -> None:
    """Another run begins: some of its files, or the ZIP itself, are worked again."""
    await connection.execute(_BEGIN_RUN, batch_id, run_job)


async def note_run(connection: Connection, batch_id: uuid.UUID, job_id: uuid.UUID) -> None:
    """Remember another job of the batch, for those who forget it."""
    await connection.execute(_NOTE_RUN, batch_id, job_id)


async def of_run_job(connection: Connection, run_job: uuid.UUID) -> uuid.UUID | None:
    """The batch whose present run has this job as its parent."""
    found = await connection.fetchval(_OF_RUN_JOB, run_job)
    return uuid.UUID(str(found)) if found is not None else None


async def adopt(connection: Connection, owner: str, by: str) -> int:
    """Make everything of one owner another's; how many batches that were."""
    owned = await connection.fetch(_OWNED, owner)
    ids: Sequence[uuid.UUID] = [row["id"] for row in owned]
    runs = [run for row in owned for run in row["all_runs"]]
    # Jobs before rows, as whoever ends jobs locks them.
    family = [row["id"] for row in await connection.fetch(_FAMILIES, runs, ids)]
    jobs = await lock_jobs(connection, family)
    adopted = await connection.fetchval(_ADOPT, owner, by, ids)
    await control.hand_over(connection, jobs, by)
    return len(adopted)
