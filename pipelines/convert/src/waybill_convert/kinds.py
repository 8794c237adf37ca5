"""The kind of job that turns one PDF into XML."""

from __future__ import annotations

from waybill_engine.kinds import JobKind
from waybill_engine.retry import RetryPolicy

DEPENDENCY = "gateway"
"""What converts: while its breaker is open, conversions are on hold."""

CONVERT_PDF = JobKind(
    "convert_pdf",
    queue="convert",
    time_limit=600.0,
    retry=RetryPolicy(retries=3, base=5.0, jitter=5.0),
    dependency=DEPENDENCY,
)
"""Payload: `upload_key`, `mapping`, `original_name`, `bytes`, `sha256`; its cost is the bytes."""

XML = "xml"
PROVENANCE = "provenance.json"
"""What a conversion publishes: the artefacts' names."""

DEFAULT_MAPPING = "pt_simon_invoice_v1"
