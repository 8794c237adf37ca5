"""The handlers of a batch's jobs: `process_batch` unpacks, `extract_file` works files, `enrich_file` has a language
model fill fields if somebody wants that, `summarize_run` ends it all."""

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
from waybill_batches.clients.language_model import language_model
from waybill_batches.enrichment import enrich, enriched_before, enricher
from waybill_batches.events import CHANGED, EXPIRED, FINISHED
from waybill_batches.extraction import EXTRACTOR, extract
from waybill_batches.file_jobs import FileJob
from waybill_batches.kinds import ENRICH_FILE, EXTRACT_FILE, PROCESS_BATCH, STORAGE, SUMMARIZE_RUN
from waybill_batches.member_store import MemberStore, UnpackedZip
from waybill_batches.repository import batches, enrichments, figures, files
from waybill_batches.repository.batches import BatchToWork
from waybill_batches.settings import batch_settings
from waybill_batches.status import ACTIVE, BatchStatus, FileStatus
from waybill_batches.summary import status_of, summary_of
from waybill_batches.wanted_fields import WantedFields
from waybill_engine import JobContext, add_children, handles

if TYPE_CHECKING:
    from waybill.db.database import Connection

RESULTS = "results"
"""The artefact with the results of a job's files."""
_PACK = "application/octet-stream"
_JSON = "application/json"


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
            # Its owner may have signed in while the ZIP was unpacked.
            batch = batch._replace(owner=await batches.owner(connection, batch.id))
            await files.replace_all(connection, batch.id, [file._replace(owner=batch.owner) for file in unpacked.files])
            await batches.note_unpacked(connection, batch.id)
            await add_children(session, batch.run_job, [each.new_job(batch) for each in unpacked.jobs])
    except Conflict as error:  # the parent no longer waits: somebody has cancelled the batch
        raise Cancelled() from error


@handles(EXTRACT_FILE)
async def extract_file(payload: dict[str, Any], job: JobContext) -> None:
    settings = await job.use(batch_settings)
    async with job.transaction() as session:
        connection = await driver(session)
        batch = await _batch(connection, payload)
        work = await files.of_job(connection, batch.id, job.id)
        wanted = WantedFields(batch.wanted) if batch.wanted is not None else None
        makers = [EXTRACTOR] if wanted is None else [enricher(settings, wanted), EXTRACTOR]
        known = await files.known_results(connection, batch.owner, [file.sha256 for file in work], makers)
    gateway = await job.use(gateway_client)
    try:
        results = await extract(job.storage, gateway, work, known, str(job.id))
    except NotFound as error:
        raise Expired(msg("batches.file_gone")) from error
    if all(one.reused for one in results.ends):
        job.used_only(STORAGE)
    stored = await job.store(RESULTS, results.pack) if results.pack else None
    key = stored.key if stored is not None else None
    ended, extracted = results.sorted_by(lambda end: wanted is not None and end.extractor == EXTRACTOR)
    try:
        async with job.complete() as session:
            connection = await driver(session)
            if stored is not None:
                await job.publish(session, RESULTS, stored, _PACK)
            await files.end(connection, batch.id, ended, tries=job.claimed.attempts, result_key=key)
            await batches.tell(connection, batch.owner)
            if extracted and key is not None:
                batch = await _batch(connection, payload)  # its owner may have signed in meanwhile
                jobs = {one.number: FileJob(bytes=one.bytes or 0, files=1, enriches=True) for one in extracted}
                await enrichments.await_model(
                    connection, batch.id, extracted, jobs, tries=job.claimed.attempts, result_key=key
                )
                await add_children(session, batch.run_job, [each.new_job(batch) for each in jobs.values()])
    except Conflict as error:  # the parent no longer waits: somebody has cancelled the batch
        raise Cancelled() from error


@handles(ENRICH_FILE)
async def enrich_file(payload: dict[str, Any], job: JobContext) -> None:
    settings = await job.use(batch_settings)
    async with job.transaction() as session:
        connection = await driver(session)
        batch = await _batch(connection, payload)
        file = await enrichments.to_enrich(connection, batch.id, job.id)
        if file is None or batch.wanted is None:  # an earlier run of the job has done it
            job.used_only()
            return
        wanted = WantedFields(batch.wanted)
        maker = enricher(settings, wanted)
        known = await files.known_results(connection, batch.owner, [file.sha256], [maker])
    enriched = await enriched_before(job.storage, file, known.get(file.sha256))
    if enriched is not None:
        job.used_only(STORAGE)
    else:
        enriched = await enrich(job, await job.use(language_model), wanted, file, maker)
    stored = await job.store(RESULTS, enriched.chunks())
    async with job.complete() as session:
        connection = await driver(session)
        await job.publish(session, RESULTS, stored, _JSON)
        await files.end(connection, batch.id, [enriched.end], tries=job.claimed.attempts, result_key=stored.key)
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
    if batch.status is BatchStatus.EXPIRED:  # its summary stays as it was when there were results
        await batches.recount(connection, [batch.id])
        return
    found = await figures.of_batch(connection, batch.id)
    status = status_of(found.by_status)
    if batch.status is BatchStatus.CANCELLED:  # what somebody did to one of its files since does not undo that
        status = BatchStatus.CANCELLED
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
    if status is BatchStatus.EXPIRED:
        event = Event(EXPIRED, batch.tenant, batch.owner, batch.id)
    else:
        name = FINISHED if batch.status in ACTIVE else CHANGED
        event = Event(name, batch.tenant, batch.owner, batch.id, told)
    await publish(connection, event)


async def _batch(connection: Connection, payload: dict[str, Any]) -> BatchToWork:
    try:
        batch_id = uuid.UUID(str(payload["batch"]))
    except (KeyError, ValueError) as error:
        raise DocumentFault(msg("batches.no_batch_named")) from error
    found = await batches.to_work(connection, batch_id)
    if found is None:
        raise Expired(msg("batches.gone"))
    return found
