"""A janitor that tests can run, and documents for it in any state and of any age, with real files."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from support.engine import FINAL
from waybill.db import Database
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.janitor.models import TaskOutcome
from waybill.janitor.task import Task, TaskTools
from waybill.storage import LocalStorage, Storage, upload_key
from waybill_convert.settings import ConvertSettings
from waybill_convert.stored_files import pages_of
from waybill_engine.artefacts import artefact_folder, artefact_key
from waybill_janitor.composition import all_tasks
from waybill_janitor.lease import JanitorLease
from waybill_janitor.run import JanitorRun, TaskReport, plan
from waybill_janitor.settings import JanitorSettings

DAY = 86400.0

_WORDS = {"scheduled": "queued", "running": "processing", "succeeded": "complete", "dead_letter": "failed"}

_JOB = """
INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit, lease_owner, lease_token, created_at,
                  started_at, finished_at, pinned_at)
VALUES ($1, $2, $3, 'convert_pdf', 'convert', $4, '{}', 60, $5, 1, now(), now(),
        CASE WHEN $6 THEN now() END, CASE WHEN $7 THEN now() END)
"""

_CONVERSION = """
INSERT INTO conversions (job_id, tenant, owner, original_name, bytes, sha256, mapping, upload_key, status, listed_at,
                         changed_at)
VALUES ($1, $2, $3, 'a.pdf', 4, $4, 'pt_simon_invoice_v1', $5, $6, now(), now())
"""

_ARTEFACT = """
INSERT INTO job_artefacts (job_id, name, storage_key, media_type, bytes, sha256, lease_token, created_at)
VALUES ($1, $2, $3, 'application/xml', 4, 'ab', 1, now())
"""

_REVISION = """
INSERT INTO revisions (job_id, number, author, changes, xml_key, xml_bytes, xml_sha256, record_key, record_bytes,
                       record_sha256)
VALUES ($1, 1, 'session', '[]', $2, 4, '', $3, 2, '')
"""

_EVENT = "INSERT INTO job_events (job_id, at, event) VALUES ($1, now(), 'succeeded')"


_WORKER = uuid.UUID(int=1)


def result_key(job_id: uuid.UUID, token: int, name: str) -> str:
    """Where a run of these documents has stored a file."""
    return artefact_key(job_id, token, _WORKER, name)


@dataclass(frozen=True)
class Janitor:
    tools: TaskTools

    async def run(self, tasks: Iterable[Task] | None = None, *, limit: float = 600.0) -> dict[str, TaskReport]:
        """Run all tasks, or these, once. Returns the report of each."""
        lease = await JanitorLease.take(self.tools.database)
        assert lease is not None, "another janitor is at work"
        run = JanitorRun(self.tools.database, lease, limit=limit, task_limit=limit)
        try:
            reports = await run.go(list(tasks or all_tasks(self.tools)), lambda _: None)
        finally:
            await lease.release(self.tools.database)
        return {report.task.name: report for report in reports}

    async def clean(self) -> dict[str, dict[str, int]]:
        """Run all tasks, none of which may fail. Returns what each task did."""
        reports = await self.run()
        failed = {name: one.error for name, one in reports.items() if one.outcome is not TaskOutcome.DONE}
        assert failed == {}
        return {name: done for name, one in reports.items() if (done := {k: v for k, v in one.done.items() if v})}

    async def would(self) -> dict[str, int]:
        """The plan of a dry run."""
        reports = await plan(all_tasks(self.tools), lambda _: None, task_limit=600)
        return {report.task.name: report.planned for report in reports if report.planned}


def janitor(db: Database, storage: Storage, *, compare_all: bool = False, **settings: Any) -> Janitor:
    """A janitor with these settings of its own and of the convert pipeline; all others have their defaults."""
    given = {"database_url": db.url, "janitor_scan_interval": 0, **settings}
    both = JanitorSettings.model_validate(given), ConvertSettings.model_validate(given)
    return Janitor(TaskTools(db, storage, *both, compare_all=compare_all))


async def document(
    connection: Connection,
    storage: LocalStorage,
    state: str = "succeeded",
    *,
    tenant: str = "acme",
    owner: str | None = None,
    pinned: bool = False,
    unpublished: bool = False,
    corrected: bool = False,
) -> uuid.UUID:
    """Make a conversion in this state as of now, with its document and, if it succeeded, its results."""
    job_id = new_id()
    owner = owner or f"tenant:{tenant}"
    worker = uuid.uuid4() if state == "running" else None
    stored = await storage.put(upload_key(job_id), b"%PDF")
    async with connection.transaction():
        await connection.execute(_JOB, job_id, tenant, owner, state, worker, state in FINAL, pinned)
        await connection.execute(_CONVERSION, job_id, tenant, owner, job_id.hex, stored.key, _WORDS.get(state, state))
        await connection.execute(_EVENT, job_id)
        if state == "succeeded":
            for name in ("xml", "provenance.json"):
                stored = await storage.put(result_key(job_id, 1, name), b"<a/>")
                await connection.execute(_ARTEFACT, job_id, name, stored.key)
    if unpublished:
        await storage.put(result_key(job_id, 9, "xml"), b"<half")
    if corrected:
        await _correct(connection, storage, job_id)
    return job_id


async def _correct(connection: Connection, storage: LocalStorage, job_id: uuid.UUID) -> None:
    """Add a revision, and an image of the first page."""
    stem = f"{artefact_folder(job_id)}/r1-ab"
    xml, record = await storage.put(f"{stem}.xml", b"<a/>"), await storage.put(f"{stem}.json", b"{}")
    await storage.put(page_key(job_id), b"PNG")
    await connection.execute(_REVISION, job_id, xml.key, record.key)
    await connection.execute("UPDATE conversions SET revision = 1 WHERE job_id = $1", job_id)


def page_key(job_id: uuid.UUID) -> str:
    return f"{pages_of(job_id)}/1-2.png"


async def stored_keys(storage: Storage) -> set[str]:
    """The keys of all objects in the storage, except for the mark of its database."""
    return {one.key async for one in storage.list()} - {"waybill-owner"}


async def named_keys(connection: Connection) -> set[str]:
    """The keys that rows name and do not mark as missing."""
    rows = await connection.fetch(
        """
        SELECT upload_key FROM conversions WHERE upload_deleted_at IS NULL AND upload_missing_at IS NULL
         UNION ALL SELECT storage_key FROM job_artefacts WHERE missing_at IS NULL
         UNION ALL SELECT unnest(ARRAY[xml_key, record_key]) FROM revisions
        """
    )
    return {row[0] for row in rows}


async def status(connection: Connection, job_id: uuid.UUID) -> str | None:
    found = await connection.fetchval("SELECT status FROM conversions WHERE job_id = $1 AND deleted_at IS NULL", job_id)
    return None if found is None else str(found)
