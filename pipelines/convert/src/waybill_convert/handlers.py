"""`convert_pdf`: one PDF through the gateway, its XML and its provenance published under the job's fence."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from waybill.db import driver
from waybill.errors import Expired, GatewayUnavailable, NotFound, Refused
from waybill_convert.clients.answers import Conversion, Rejected
from waybill_convert.clients.source import Source
from waybill_convert.kinds import CONVERT_PDF, PROVENANCE, XML
from waybill_convert.repository.results import note_result, published
from waybill_documents.catalogue import summary
from waybill_engine.context import JobContext
from waybill_engine.registry import handles


class ConvertPayload(BaseModel):
    model_config = ConfigDict(extra="ignore")  # an API of another version may say more

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
        async with job.complete():
            return
    job.progress(0.1, "Converting")
    source = Source(job.storage.stream(plan.upload_key), plan.bytes, plan.sha256)
    try:
        conversion = await job.gateway.convert(source, mapping=plan.mapping, job_id=str(job.id), apart=job.run_blocking)
    except NotFound as error:
        raise Expired("The document is not stored any more. Please upload it again.") from error
    except Rejected as error:
        await _keep_what_was_found(job, error)
        raise
    _check(conversion.root, plan.mapping)
    job.progress(0.9, "Storing the result")
    await _publish(job, conversion)


async def _is_done_already(job: JobContext) -> bool:
    """Whether an earlier attempt published a result that is still there: another call would only cost."""
    async with job.transaction() as session:
        found = await published(await driver(session), job.id, XML)
    return found is not None and found.bytes > 0 and await job.storage.exists(found.key)


def _check(root: str, mapping: str) -> None:
    """Refuse what is not the document that was asked for. It is the converter's fault, so it is tried again."""
    known = summary(mapping)  # none for a mapping that only the gateway has
    if known is not None and root not in known.roots:
        raise GatewayUnavailable(f"The converter's XML is a <{root}>, not a <{' or '.join(known.roots)}>.")


async def _publish(job: JobContext, conversion: Conversion) -> None:
    xml = await job.store(XML, conversion.xml)
    provenance = await job.store(PROVENANCE, conversion.provenance)
    async with job.complete() as session:
        await job.publish(session, XML, xml, "application/xml")
        await job.publish(session, PROVENANCE, provenance, "application/json")
        await note_result(await driver(session), job.id, conversion.pages)


async def _keep_what_was_found(job: JobContext, error: Rejected) -> None:
    """Publish what the converter found of a document that failed, for the person who looks into it."""
    if error.partial is None:
        return
    stored = await job.store(PROVENANCE, error.partial)
    async with job.transaction() as session:
        await job.publish(session, PROVENANCE, stored, "application/json")
