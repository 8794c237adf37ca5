"""What becomes of ended jobs: they are pinned, or deleted, or they and their history are past their age.

`retention` is the engine's part of what the janitor goes over. A job's row goes last: pipelines are asked whether they
still keep something of it. Every statement that removes runs after `lock`, which admits nobody who would move, pin or
reuse the job meanwhile.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from waybill.retention.rules import (
    IdRange,
    JobIds,
    JobKeeper,
    NamedObject,
    ObjectNames,
    PipelineRetention,
    RetentionRule,
    StoredObject,
)
from waybill_engine.families import children_ended
from waybill_engine.leftovers import SERVED_ROWS
from waybill_engine.sequences import advance, sequence_of
from waybill_engine.shelf_days import SLACK_DAYS

if TYPE_CHECKING:
    from waybill.db.database import Connection

RULE_NAMES = {"events": "history", "jobs": "ended jobs"}
"""The engine's retention rules, and what has their age, for people."""

# A job that somebody else has locked just now will still be there next time.
_LOCK = "SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED"

# Whoever wants to bring one of them back waits for this.
_LOCK_SHELVED = "SELECT id FROM shelved_jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED"

_PIN = """
UPDATE jobs SET pinned_at = CASE WHEN $2 THEN now() END WHERE id = $1 AND (pinned_at IS NOT NULL) <> $2 RETURNING id
"""

_DELETE = f"""
WITH events AS (
    DELETE FROM job_events WHERE job_id = ANY ($1::uuid[]) RETURNING 1
), shelved_events AS (
    DELETE FROM shelved_job_events WHERE job_id = ANY ($1::uuid[]) RETURNING 1
), shelved AS (
    DELETE FROM shelved_jobs WHERE id = ANY ($1::uuid[]) RETURNING 1
), artefacts AS (
    DELETE FROM job_artefacts WHERE job_id = ANY ($1::uuid[]) RETURNING storage_key
), removed AS (
    DELETE FROM jobs WHERE id = ANY ($1::uuid[])
    RETURNING CASE WHEN awaited AND finished_at IS NULL THEN parent_id END AS awaited_by,
              CASE WHEN finished_at IS NULL THEN to_json({sequence_of("jobs")})::text END AS sequence
)
SELECT (SELECT count(*) FROM removed) + (SELECT count(*) FROM shelved) AS jobs,
       (SELECT count(*) FROM events) + (SELECT count(*) FROM shelved_events) AS events,
       ARRAY(SELECT storage_key FROM artefacts) AS keys,
       ARRAY(SELECT awaited_by FROM removed WHERE awaited_by IS NOT NULL) AS parents,
       ARRAY(SELECT DISTINCT sequence FROM removed WHERE sequence IS NOT NULL) AS sequences
"""  # noqa: S608 - made of constants

_REMOVE_ARTEFACTS = """
WITH removed AS (
    DELETE FROM job_artefacts WHERE job_id = ANY ($1::uuid[]) RETURNING bytes
)
SELECT count(*) AS files, COALESCE(sum(bytes), 0)::bigint AS bytes FROM removed
"""

_WITH_ARTEFACTS = """
SELECT DISTINCT job_id
  FROM (SELECT job_id FROM job_artefacts
         WHERE job_id > $1 AND job_id <= $2
         ORDER BY job_id LIMIT $3) AS artefacts
 ORDER BY job_id
"""

_WITH_EVENTS = """
SELECT DISTINCT job_id
  FROM (SELECT job_id FROM all_job_events
         WHERE job_id > $1 AND job_id <= $2
         ORDER BY job_id LIMIT $3) AS events
 ORDER BY job_id
"""

_EVENTS_DUE = """
SELECT job_retention.job_id
  FROM job_retention
  LEFT JOIN retention_ages ON retention_ages.tenant = job_retention.tenant AND rule = 'events'
 WHERE job_retention.job_id = ANY ($1::uuid[]) AND NOT kept
   AND EXISTS (SELECT FROM all_job_events
                WHERE all_job_events.job_id = job_retention.job_id
                  AND at <= now() - COALESCE(days, $2) * interval '1 day')
"""

_REMOVE_EVENTS = """
WITH due AS MATERIALIZED (
    SELECT jobs.id AS job_id, now() - COALESCE(days, $2) * interval '1 day' AS until
      FROM all_jobs AS jobs
      LEFT JOIN retention_ages ON retention_ages.tenant = jobs.tenant AND rule = 'events'
     WHERE jobs.id = ANY ($1::uuid[])
), removed AS (
    DELETE FROM job_events USING due
     WHERE job_events.job_id = due.job_id AND job_events.at <= due.until
    RETURNING 1
), removed_from_shelf AS (
    DELETE FROM shelved_job_events USING due
     WHERE shelved_job_events.job_id = due.job_id AND shelved_job_events.at <= due.until
    RETURNING 1
)
SELECT (SELECT count(*) FROM removed) + (SELECT count(*) FROM removed_from_shelf) AS events
"""

_JOBS = "SELECT id AS job_id FROM all_jobs WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3"

# A unique key "for ever" keeps its job for ever, and a published file keeps the job that published it. What could go
# with its whole day on the shelf is given a little longer ($3), unless its tenant has an age of its own or a pipeline
# has rows of it ($4, NULL if that is not known).
_JOBS_DUE = """
SELECT job_retention.job_id, now() - COALESCE(days, $2) * interval '1 day' AS until
  FROM job_retention
  LEFT JOIN retention_ages ON retention_ages.tenant = job_retention.tenant AND rule = 'jobs'
 WHERE job_retention.job_id = ANY ($1::uuid[]) AND NOT kept
   AND finished_at <= now() - COALESCE(
           days, CASE WHEN shelved AND kind <> ALL ($4::text[]) THEN $2 + $3 ELSE $2 END) * interval '1 day'
   AND (unique_scope IS NULL OR unique_scope = 'active' OR unique_until <= now()) IS TRUE
   AND NOT EXISTS (SELECT FROM job_artefacts WHERE job_artefacts.job_id = job_retention.job_id)
"""

_NEXT_JOBS = "SELECT id FROM all_jobs WHERE id > $1 ORDER BY id LIMIT $2"

_LEFTOVERS = """
SELECT job_id, (NOT kept AND finished_at <= now() - $2::float8 * interval '1 second') IS TRUE AS may_go
  FROM job_retention WHERE job_id = ANY ($1::uuid[])
"""

_NAMED = """
SELECT listed.key
  FROM unnest($1::uuid[], $2::text[]) AS listed (job_id, key)
  JOIN job_artefacts ON job_artefacts.job_id = listed.job_id AND storage_key = listed.key
"""

_EXPECTED = """
SELECT job_id, storage_key, missing_at IS NOT NULL FROM job_artefacts
 WHERE job_id = ANY ($1::uuid[])
 ORDER BY job_id, storage_key
"""

_MARK = """
UPDATE job_artefacts SET missing_at = CASE WHEN missing THEN now() END
  FROM unnest($1::uuid[], $2::text[], $3::bool[]) AS seen (job_id, key, missing)
 WHERE job_artefacts.job_id = seen.job_id AND storage_key = key AND (missing_at IS NOT NULL) <> missing
"""


@dataclass(frozen=True, slots=True)
class Deleted:
    """What went with some jobs."""

    jobs: int
    events: int
    keys: list[str]
    """Their published files, which are garbage from now on."""


async def lock(connection: Connection, job_ids: JobIds) -> list[uuid.UUID]:
    """Those of the jobs that could be locked, until the transaction ends."""
    found = _ids(await connection.fetch(_LOCK, job_ids), "id")
    if len(found) < len(job_ids):
        found += _ids(await connection.fetch(_LOCK_SHELVED, job_ids), "id")
    return found


async def pin(connection: Connection, job_id: uuid.UUID, *, pinned: bool) -> bool:
    """Keep a job that the caller has locked whatever its age, or no longer. False if it was so already."""
    return await connection.fetchval(_PIN, job_id, pinned) is not None


async def delete(connection: Connection, job_ids: JobIds) -> Deleted:
    """Remove jobs that the caller has locked, with their history and their published files.

    A parent that waited for one of them no longer does, as if the child had ended, and neither does a later job of the
    same sequence.
    """
    row = await connection.fetchrow(_DELETE, job_ids)
    assert row is not None  # noqa: S101 - sub-selects always answer
    await children_ended(connection, row["parents"])
    await advance(connection, [json.loads(one) for one in row["sequences"]])
    return Deleted(row["jobs"], row["events"], row["keys"])


async def with_artefacts(connection: Connection, page: IdRange) -> JobIds:
    """The jobs of a page that have published files, of whatever kind they are."""
    return _ids(await connection.fetch(_WITH_ARTEFACTS, *page))


async def remove_artefacts(connection: Connection, job_ids: JobIds) -> tuple[int, int]:
    """Remove the published files of jobs that the caller has locked, which stay listed; how many files and bytes."""
    row = await connection.fetchrow(_REMOVE_ARTEFACTS, job_ids)
    assert row is not None  # noqa: S101 - aggregates always answer
    return row["files"], row["bytes"]


async def jobs_after(connection: Connection, job_id: uuid.UUID, limit: int) -> list[uuid.UUID]:
    """The next jobs in the order of their ids, whatever their state."""
    return _ids(await connection.fetch(_NEXT_JOBS, job_id, limit), "id")


async def leftovers_may_go(connection: Connection, job_ids: JobIds, grace: float) -> dict[uuid.UUID, bool]:
    """For each job that is there: whether it ended so many seconds ago and nothing keeps it."""
    return {row["job_id"]: row["may_go"] for row in await connection.fetch(_LEFTOVERS, job_ids, grace)}


def retention(
    *, events_days: float, jobs_days: float, keepers: Sequence[JobKeeper], kinds_with_rows: Sequence[str] | None = None
) -> PipelineRetention:
    """The engine's part. `keepers` are the pipelines' answers to whether a job must stay, and `kinds_with_rows` the
    kinds of jobs that pipelines have rows of, if all pipelines say which."""
    events = RetentionRule(
        name="events",
        keeps=RULE_NAMES["events"],
        items="jobs whose history is past its time",
        default_days=lambda _: events_days,
        find=_find_with_events,
        due=_events_due,
        remove=_remove_events,
    )
    jobs = RetentionRule(
        name="jobs",
        keeps=RULE_NAMES["jobs"],
        items="ended jobs past their time",
        default_days=lambda _: jobs_days,
        find=_find_jobs,
        due=_jobs_due(keepers, kinds_with_rows),
        remove=_remove_jobs,
    )
    return PipelineRetention(
        rules=(events, jobs),
        prefixes=("results",),
        objects=ObjectNames(owned=_nobodys, named=_named, expected=_expected, mark=_mark),
        served_rows=SERVED_ROWS,
        tables=("jobs", "job_events", "job_artefacts", "workers"),
    )


async def _find_with_events(connection: Connection, page: IdRange) -> JobIds:
    return _ids(await connection.fetch(_WITH_EVENTS, *page))


async def _events_due(connection: Connection, job_ids: JobIds, days: float) -> JobIds:
    return _ids(await connection.fetch(_EVENTS_DUE, job_ids, days))


async def _remove_events(connection: Connection, job_ids: JobIds, days: float) -> Mapping[str, int]:
    return {"events": await connection.fetchval(_REMOVE_EVENTS, job_ids, days)}


async def _find_jobs(connection: Connection, page: IdRange) -> JobIds:
    return _ids(await connection.fetch(_JOBS, *page))


def _jobs_due(
    keepers: Sequence[JobKeeper], kinds_with_rows: Sequence[str] | None
) -> Callable[[Connection, JobIds, float], Awaitable[JobIds]]:
    async def due(connection: Connection, job_ids: JobIds, days: float) -> JobIds:
        rows = await connection.fetch(_JOBS_DUE, job_ids, days, SLACK_DAYS, kinds_with_rows)
        until = {row["job_id"]: row["until"] for row in rows}
        for keeps in keepers:
            if until:
                for kept in await keeps(connection, list(until), list(until.values())):
                    del until[kept]
        return list(until)

    return due


async def _remove_jobs(connection: Connection, job_ids: JobIds, _days: float) -> Mapping[str, int]:
    deleted = await delete(connection, job_ids)
    return {"jobs": deleted.jobs, "events": deleted.events}


async def _nobodys(_connection: Connection, _job_ids: JobIds) -> set[uuid.UUID]:
    """The engine cannot know which files of a job are worth keeping; only the job's pipeline does."""
    return set()


async def _named(connection: Connection, listed: Sequence[StoredObject]) -> set[str]:
    rows = await connection.fetch(_NAMED, [one.job_id for one in listed], [one.key for one in listed])
    return {row["key"] for row in rows}


async def _expected(connection: Connection, job_ids: JobIds) -> Sequence[NamedObject]:
    return [NamedObject(*row) for row in await connection.fetch(_EXPECTED, job_ids)]


async def _mark(connection: Connection, seen: Sequence[NamedObject]) -> None:
    await connection.execute(_MARK, *map(list, zip(*seen, strict=True)))


def _ids(rows: Sequence[asyncpg.Record], column: str = "job_id") -> list[uuid.UUID]:
    return [row[column] for row in rows]
