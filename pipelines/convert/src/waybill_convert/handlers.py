"""The handler of `convert_pdf`: it sends one PDF to the gateway and publishes the XML and its provenance."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from waybill.changes import Event, publish
from waybill.config import load
from waybill.db import driver
from waybill.errors import Expired, IoFailure, NotFound, Refused
from waybill.files.names import safe_name
from waybill.gateway_client.source import Source
from waybill.messages import msg
from waybill.security.principals import owner_of_tenant
from waybill.storage import upload_key
from waybill.telemetry.metrics import REVIEWS
from waybill_convert.clients.answers import ConvertedDocument, Rejected, UsedMapping, stored_conversion
from waybill_convert.clients.gateway import gateway_client
from waybill_convert.doubts import KnownThresholds
from waybill_convert.events import COMPLETED, NEEDS_REVIEW, files_told
from waybill_convert.kinds import CONVERT_PDF, PROVENANCE, STORAGE, XML
from waybill_convert.mapping_catalogue import MappingCatalogue, catalogue_of
from waybill_convert.mapping_wish import MappingWish
from waybill_convert.models import Upload
from waybill_convert.pinned_catalogues import AutoChoice, CatalogueCache
from waybill_convert.repository import conversions
from waybill_convert.repository import thresholds as review_thresholds
from waybill_convert.repository.conversions import NamedMapping
from waybill_convert.repository.results import note_choice, note_result, of_same_document
from waybill_convert.settings import ConvertSettings
from waybill_documents.catalogue import AUTO
from waybill_documents.faults import MappingFault
from waybill_engine import ClaimedJob, JobContext, Snooze, control, handles
from waybill_engine.artefacts import published
from waybill_engine.job_locks import lock_job

if TYPE_CHECKING:
    from waybill.db.database import Connection


_CANDIDATES = CatalogueCache()

RELEASE = version("waybill-documents")
"""What reads documents here: worker and gateway are of one release, but for the minutes of an upgrade."""

_WAITED = "waited_for_document"
_FIRST_WAIT, _LONGEST_WAIT = 5.0, 60.0
"""Seconds between two looks for a document: the first, and the longest when they have doubled often enough."""


class ConvertPayload(BaseModel):
    """What a job needs to know. Others write it, too: `docs/pipelines.md` says what each field means."""

    model_config = ConfigDict(extra="ignore")  # an API of another version may send more

    upload_key: str
    mapping: str
    bytes: int = Field(ge=1)
    sha256: str | None = None
    original_name: str | None = None
    mapping_sha256: str | None = None
    """The version of the mapping. Without it, the name is resolved when the first run starts."""
    loss: Literal["strict", "lenient"] | None = None
    """What may be lost of an e-invoice. Without it, the mapping decides."""
    reuse: bool = False
    """Whether a result that its owner has of the same document may be copied."""


@handles(CONVERT_PDF)
async def convert_pdf(payload: dict[str, Any], job: JobContext) -> None:
    try:
        plan = ConvertPayload.model_validate(payload)
    except ValidationError as error:
        raise Refused(f"The job's payload is wrong: {error.errors(include_url=False)[0]['msg']}") from error
    async with job.transaction() as session:
        connection = await driver(session)
        mapping = await note_conversion(connection, job.claimed, plan)
        wish = await _wish(connection, mapping)
        thresholds = KnownThresholds(
            load(ConvertSettings).review_below, await review_thresholds.of_tenant(connection, job.tenant)
        )
        found = await published(connection, job.id, XML)
    # An earlier attempt may have published a result that still exists. Another call would be wasted.
    if found is not None and found.bytes > 0 and await job.storage.exists(found.storage_key):
        job.used_only(STORAGE)
        async with job.complete():
            return
    if plan.reuse and (same := await _same_result(job, plan, mapping, thresholds)) is not None:
        job.used_only(STORAGE)
        await _publish(job, same, reused=True)
        return
    gateway = await job.use(gateway_client)
    job.progress(0.1, "convert.progress.converting")
    source = Source(job.storage.stream(plan.upload_key), plan.bytes, plan.sha256)
    try:
        conversion = await gateway.convert(
            source,
            mapping=mapping.name,
            files=wish.files,
            candidates=wish.candidates.field if wish.candidates is not None else None,
            loss=mapping.loss,
            job_id=str(job.id),
            apart=job.run_blocking,
            thresholds=thresholds,
        )
    except NotFound as error:
        await _wait_for_document(job)
        raise Expired(msg("convert.document_gone")) from error
    except Rejected as error:
        await _keep_what_was_found(job, error)
        raise
    wish.check(conversion)
    job.progress(0.9, "convert.progress.storing")
    await _publish(job, conversion)


async def _same_result(
    job: JobContext, plan: ConvertPayload, mapping: NamedMapping, thresholds: KnownThresholds
) -> ConvertedDocument | None:
    """What the same release has read in the same document with the same version of the mapping, if it is still stored.

    It is judged by the thresholds of now, and what a person made of the other one stays there.
    """
    if plan.sha256 is None or mapping.sha256 is None:
        return None
    async with job.transaction() as session:
        same = await of_same_document(
            await driver(session),
            job.owner,
            mapping,
            sha256=plan.sha256,
            size=plan.bytes,
            converted_by=RELEASE,
        )
    if same is None:
        return None
    try:
        xml, record = await job.storage.get(same.xml_key), await job.storage.get(same.record_key)
    except NotFound:
        return None  # the janitor was faster
    found: ConvertedDocument = await job.run_blocking(stored_conversion, xml, record, thresholds)
    return found


async def note_conversion(connection: Connection, job: ClaimedJob, plan: ConvertPayload) -> NamedMapping:
    """Make the row of a job that another pipeline or an operator enqueued by the name of its kind.

    Its mapping is found in its tenant, now, and is the same for every later run. Returns the mapping that was named.

    From here on it can be reviewed, downloaded, kept and erased like one that was uploaded. The caller's transaction is
    fenced, so a run that lost its job makes no row. A child is in no list: a batch would flood it.
    """
    known = await conversions.named_mapping(connection, job.id)
    if known is not None:
        return known
    sha256 = plan.mapping_sha256 or await _resolved(connection, job.tenant, plan.mapping)
    named = NamedMapping(job.tenant, plan.mapping, sha256, plan.loss)
    locked = await lock_job(connection, job.id)
    if locked is None:
        return named
    document = Upload(
        job_id=job.id,
        key=plan.upload_key,
        original_name=safe_name(plan.original_name or plan.upload_key),
        bytes=plan.bytes,
        sha256=plan.sha256 or "",
        mapping=plan.mapping,
        mapping_sha256=sha256,
        loss=plan.loss,
    )
    await conversions.insert_running(
        connection,
        job.tenant,
        # Without an owner of its own, a job is its tenant's.
        owner_of_tenant(job.tenant) if locked.owner == job.tenant else locked.owner,
        document,
        borrowed=plan.upload_key != upload_key(job.id),
        listed_at=job.created_at if locked.parent_id is None else None,
    )
    return named


async def _wait_for_document(job: JobContext) -> None:
    """Look again later, for a while, if nobody has removed the document: during a move it may be in the other place."""
    async with job.transaction() as session:
        if not await conversions.keeps_document(await driver(session), job.id):
            return
    left_behind = await job.last_checkpoint() or {}
    waited = float(left_behind.get(_WAITED, 0.0))
    longest = load(ConvertSettings).document_wait
    if waited >= longest:
        return
    wait = min(max(waited, _FIRST_WAIT), _LONGEST_WAIT, longest - waited)
    await job.checkpoint({**left_behind, _WAITED: waited + wait})
    raise Snooze(wait, "Its document is not in the storage now, and is looked for again")


async def _resolved(connection: Connection, tenant: str, name: str) -> str | None:
    """The hash of what a name means now. `auto` means the mappings that its tenant has now."""
    if name != AUTO:
        return await _catalogue().resolve(connection, tenant, name)
    choice = AutoChoice.among((await _catalogue().choices(connection, tenant)).values())
    await choice.pin(connection)
    return choice.sha256


async def _wish(connection: Connection, mapping: NamedMapping) -> MappingWish:
    if mapping.name == AUTO and mapping.sha256 is not None:
        candidates = await _CANDIDATES.get(connection, _catalogue(), mapping.tenant, mapping.sha256)
        return MappingWish(mapping, candidates=candidates)
    return MappingWish(mapping, await _catalogue().files(connection, mapping.tenant, mapping.name, mapping.sha256))


def _catalogue() -> MappingCatalogue:
    """The mappings of this installation. The folder is read once, by the first run that asks."""
    try:
        return catalogue_of(load(ConvertSettings).mappings_dir)
    except MappingFault as fault:
        raise IoFailure(msg("convert.mapping.folder", why=str(fault))) from fault


async def _publish(job: JobContext, conversion: ConvertedDocument, *, reused: bool = False) -> None:
    xml = await job.store(XML, conversion.xml)
    provenance = await job.store(PROVENANCE, conversion.provenance)
    doubts = conversion.doubts
    async with job.complete() as session:
        await job.publish(session, XML, xml, "application/xml")
        await job.publish(session, PROVENANCE, provenance, "application/json")
        connection = await driver(session)
        brief = doubts.brief() if doubts is not None else None
        noted = await note_result(connection, job.id, conversion.pages, brief, converted_by=RELEASE)
        # Its owner may have signed in since the job was claimed, and taken it along.
        owner = noted.owner if noted is not None else job.owner
        await _note_choice(connection, job, conversion.used)
        in_doubt = doubts if noted is not None and noted.needs_review else None
        if in_doubt is not None:
            await control.note(connection, job.id, "needs_review", in_doubt.sentence)
        name, more = (COMPLETED, {}) if in_doubt is None else (NEEDS_REVIEW, in_doubt.brief())
        told = {**more, "pages": conversion.pages, "amounts": conversion.amounts, "files": files_told(provenance, xml)}
        told["reused"] = reused
        await publish(session, Event(name, job.tenant, owner, job.id, told))
    if in_doubt is not None:
        REVIEWS.labels("needed").inc()


async def _keep_what_was_found(job: JobContext, error: Rejected) -> None:
    """Publish what the gateway found in a document that failed, for the person who looks into it."""
    if error.partial is None:
        return
    stored = await job.store(PROVENANCE, error.partial)
    async with job.transaction() as session:
        await job.publish(session, PROVENANCE, stored, "application/json")
        await _note_choice(await driver(session), job, error.used)


async def _note_choice(connection: Connection, job: JobContext, used: UsedMapping | None) -> None:
    if used is not None and used.sha256 is not None and used.recognition is not None:
        await note_choice(connection, job.id, used.name, used.sha256, used.recognition)
