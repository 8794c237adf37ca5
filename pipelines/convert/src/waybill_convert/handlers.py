"""The handler of `convert_pdf`: it sends one PDF to the gateway and publishes the XML and its provenance."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from waybill.changes import Event, publish
from waybill.db import driver
from waybill.errors import Expired, GatewayUnavailable, NotFound, Refused
from waybill.messages import msg
from waybill_convert.clients.answers import ConvertedDocument, Rejected
from waybill_convert.clients.gateway import gateway_client
from waybill_convert.clients.source import Source
from waybill_convert.events import COMPLETED
from waybill_convert.kinds import CONVERT_PDF, PROVENANCE, STORAGE, XML
from waybill_convert.repository.results import note_result, published
from waybill_documents.catalogue import summary
from waybill_engine import JobContext, handles


class ConvertPayload(BaseModel):
    model_config = ConfigDict(extra="ignore")  # an API of another version may send more

    upload_key: str
    mapping: str
    bytes: int = Field(ge=1)
    sha256: str | None = None


@handles(CONVERT_PDF)
async def convert_pdf(payload: dict[str, Any], job: JobContext) -> None:
    try:
        plan = ConvertPayload.model_validate(payload)
    except ValidationError as error:
        raise Refused(f"The job's payload is wrong: {error.errors(include_url=False)[0]['msg']}") from error
    if await _is_done_already(job):
        job.used_only(STORAGE)
        async with job.complete():
            return
    gateway = await job.use(gateway_client)
    job.progress(0.1, "convert.progress.converting")
    source = Source(job.storage.stream(plan.upload_key), plan.bytes, plan.sha256)
    try:
        conversion = await gateway.convert(source, mapping=plan.mapping, job_id=str(job.id), apart=job.run_blocking)
    except NotFound as error:
        raise Expired(msg("convert.document_gone")) from error
    except Rejected as error:
        await _keep_what_was_found(job, error)
        raise
    _check(conversion.root, plan.mapping)
    job.progress(0.9, "convert.progress.storing")
    await _publish(job, conversion)


async def _is_done_already(job: JobContext) -> bool:
    """Whether an earlier attempt published a result that still exists, so that another call would be wasted."""
    async with job.transaction() as session:
        found = await published(await driver(session), job.id, XML)
    return found is not None and found.bytes > 0 and await job.storage.exists(found.key)


def _check(root: str, mapping: str) -> None:
    """Refuse XML that is not what was asked for. That is the gateway's fault, so the job is retried."""
    known = summary(mapping)  # None for a mapping that only the gateway has
    if known is not None and root not in known.roots:
        raise GatewayUnavailable(msg("convert.gateway.other_root", found=root, wanted=" or ".join(known.roots)))


async def _publish(job: JobContext, conversion: ConvertedDocument) -> None:
    xml = await job.store(XML, conversion.xml)
    provenance = await job.store(PROVENANCE, conversion.provenance)
    async with job.complete() as session:
        await job.publish(session, XML, xml, "application/xml")
        await job.publish(session, PROVENANCE, provenance, "application/json")
        # Its owner may have signed in since the job was claimed, and taken it along.
        owner = await note_result(await driver(session), job.id, conversion.pages) or job.owner
        await publish(session, Event(COMPLETED, job.tenant, owner, job.id, {"pages": conversion.pages}))


async def _keep_what_was_found(job: JobContext, error: Rejected) -> None:
    """Publish what the gateway found in a document that failed, for the person who looks into it."""
    if error.partial is None:
        return
    stored = await job.store(PROVENANCE, error.partial)
    async with job.transaction() as session:
        await job.publish(session, PROVENANCE, stored, "application/json")
