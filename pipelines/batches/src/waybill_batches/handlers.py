"""The handlers of a batch's jobs: `process_batch` unpacks, `extract_file` works files, `summarize_run` ends it all."""

from __future__ import annotations

import uuid
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from waybill.changes import Event, publish
from waybill.db import driver
from waybill.errors import Cancelled, Conflict, DocumentFault, Expired, NotFound
from waybill.failures import classify
from waybill.gateway_client.source import Source
from waybill.messages import msg
from waybill_batches.clients.gateway import gateway_client
from waybill_batches.events import FINISHED
from waybill_batches.extraction import EXTRACTOR, extract
from waybill_batches.kinds import EXTRACT_FILE, PROCESS_BATCH, STORAGE, SUMMARIZE_RUN
from waybill_batches.repository import batches, figures, files
from waybill_batches.repository.batches import BatchToWork
from waybill_batches.status import FileStatus
from waybill_batches.summary import status_of, summary_of
from waybill_batches.unpacking import MemberStore, UnpackedZip
from waybill_engine import JobContext, add_children, handles

if TYPE_CHECKING:
    from waybill.db.database import Connection

RESULTS = "results"
"""The artefact with the results of a job's files."""
_PACK = "application/octet-stream"


@handles(PROCESS_BATCH)
async def process_batch(payload: dict[str, Any], job: JobContext) -> None:
    async with job.transaction() as session:
        connection = await driver(session)
        batch = await _batch(connection, payload)
        await batches.begin(connection, batch.id)
    if batch.unpacked:
        return
    gateway = await job.use(gateway_client)
    source = Source(job.storage.stream(batch.source_key), batch.bytes, batch.sha256)
    try:
        async with aclosing(gateway.unpack(source, str(job.id))) as members:
            unpacked = await MemberStore(job, batch).keep(members)
    except NotFound as error:
        raise Expired(msg("batches.zip_gone")) from error
    except DocumentFault as error:
        await _refuse(job, batch, error)
        raise
    await _begin_work(job, batch, unpacked)


async def _refuse(job: JobContext, batch: BatchToWork, error: DocumentFault) -> None:
    async with job.transaction() as session:
        said = classify(error)
        told = {"code": said.code, "message": said.message, "key": said.key, "params": said.params}
        await batches.note_refused(await driver(session), batch.id, told)


async def _begin_work(job: JobContext, batch: BatchToWork, unpacked: UnpackedZip) -> None:
    """Make the rows and the jobs of the files, all at once."""
    try:
        async with job.complete() as session:
            connection = await driver(session)
            for part in unpacked.parts:
                await job.publish(session, part.name, part.stored, _PACK)
            await files.replace_all(connection, batch.id, unpacked.files)
            await batches.note_unpacked(connection, batch.id)
            await add_children(session, batch.run_job, [each.new_job(batch) for each in unpacked.jobs])
    except Conflict as error:  # the parent no longer waits: somebody has cancelled the batch
        raise Cancelled() from error


@handles(EXTRACT_FILE)
async def extract_file(payload: dict[str, Any], job: JobContext) -> None:
    async with job.transaction() as session:
        connection = await driver(session)
        batch = await _batch(connection, payload)
        work = await files.of_job(connection, batch.id, job.id)
        known = await files.known_results(connection, batch.owner, [file.sha256 for file in work], EXTRACTOR)
    gateway = await job.use(gateway_client)
    try:
        results = await extract(job.storage, gateway, work, known, str(job.id))
    except NotFound as error:
        raise Expired(msg("batches.file_gone")) from error
    if all(one.reused for one in results.ends):
        job.used_only(STORAGE)
    stored = await job.store(RESULTS, results.pack) if results.pack else None
    async with job.complete() as session:
        connection = await driver(session)
        if stored is not None:
            await job.publish(session, RESULTS, stored, _PACK)
        await files.end(
            connection,
            batch.id,
            results.ends,
            tries=job.claimed.attempts,
            result_key=stored.key if stored is not None else None,
            extractor=EXTRACTOR,
        )
        await batches.tell(connection, batch.owner)


@handles(SUMMARIZE_RUN)
async def summarize_run(payload: dict[str, Any], job: JobContext) -> None:
    async with job.complete() as session:
        connection = await driver(session)
        batch = await _batch(connection, payload)
        await end_batch(connection, batch)


async def end_batch(connection: Connection, batch: BatchToWork) -> None:
    """Write how a batch ended, and tell everybody."""
    await batches.lock(connection, batch.id)
    found = await figures.of_batch(connection, batch.id)
    status = status_of(found.by_status)
    summary = summary_of(found, batch.run) if found.by_status else None
    counts = {"files": sum(found.by_status.values()), **found.by_status}
    await batches.end(connection, batch.id, status, counts, summary)
    complete = counts.get(FileStatus.COMPLETE, 0) + counts.get(FileStatus.NEEDS_REVIEW, 0)
    told = {
        "name": batch.name,
        "status": status,
        "files": counts["files"],
        "complete": complete,
        "failed": counts.get(FileStatus.FAILED, 0),
        "run": batch.run,
    }
    await publish(connection, Event(FINISHED, batch.tenant, batch.owner, batch.id, told))


async def _batch(connection: Connection, payload: dict[str, Any]) -> BatchToWork:
    try:
        batch_id = uuid.UUID(str(payload["batch"]))
    except (KeyError, ValueError) as error:
        raise DocumentFault(msg("batches.no_batch_named")) from error
    found = await batches.to_work(connection, batch_id)
    if found is None:
        raise Expired(msg("batches.gone"))
    return found
