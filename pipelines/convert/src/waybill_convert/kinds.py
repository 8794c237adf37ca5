"""The kind of job that turns one PDF into XML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from waybill.config import load
from waybill.errors import BadMapping
from waybill.messages import msg
from waybill_convert.settings import ConvertSettings
from waybill_documents.catalogue import AUTO
from waybill_engine import JobKind, RetryPolicy

if TYPE_CHECKING:
    from waybill.db.database import Connection

GATEWAY = "gateway"
STORAGE = "storage"
DEPENDENCIES = (GATEWAY, STORAGE)
"""What converts, and where documents and results are. While the breaker of either is open, conversions stay queued."""


def _gateway_calls() -> int:
    return load(ConvertSettings).gateway_calls


def _configured(kind: JobKind) -> JobKind:
    return with_retries(kind, load(ConvertSettings).convert_retries)


async def _accepts(connection: Connection, tenant: str, payload: Mapping[str, Any]) -> None:
    """BadMapping unless the payload names a mapping that the tenant can use."""
    from waybill_convert.mapping_catalogue import catalogue_of  # workers and commands that never ask do not need it

    name = str(payload.get("mapping", ""))
    choices = await catalogue_of(load(ConvertSettings).mappings_dir).choices(connection, tenant)
    if name != AUTO and name not in choices:
        raise BadMapping(msg("convert.upload.no_mapping", name=name[:100], names=sorted(choices)))


def with_retries(kind: JobKind, retries: int) -> JobKind:
    """The kind with another number of retries. A job keeps the number it was enqueued with."""
    return replace(kind, retry=replace(kind.retry, retries=retries))


CONVERT_PDF = JobKind(
    "convert_pdf",
    queue="convert",
    time_limit=600.0,
    retry=RetryPolicy(retries=3, base=5.0, jitter=5.0),
    dependencies=DEPENDENCIES,
    default_cap=_gateway_calls,
    tells_end=True,
    configured=_configured,
    accepts=_accepts,
)
"""Its payload has `upload_key`, `mapping`, `original_name`, `bytes` and `sha256`; its cost is the bytes."""

KINDS = (CONVERT_PDF,)


XML = "xml"
PROVENANCE = "provenance.json"
"""The names of the artefacts a conversion publishes."""

DEFAULT_MAPPING = "pt_simon_invoice_v1"
