"""What the API writes: the JSON of batches and files, and their schemas."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from waybill_batches.error_types import ErrorType
from waybill_batches.status import BatchStatus, FileStatus
from waybill_batches.views import BatchFault, BatchListing, BatchView, FileListing, FileView


class ErrorSchema(BaseModel):
    """Why a batch or a file failed."""

    code: str = Field(examples=["PARSE_ERROR"])
    error_type: ErrorType = Field(description="What can be done about it; derived from the code.")
    message: str = Field(description="One English sentence.")
    key: str | None = Field(description="The sentence in a form that can be translated, with `params`.")
    params: dict[str, Any]


class SourceSchema(BaseModel):
    """The ZIP, as it was uploaded."""

    name: str
    bytes: int
    sha256: str


class RuleSchema(BaseModel):
    pattern: str = Field(examples=["invoices/*.pdf"])
    mapping: str = Field(examples=["pt_simon_invoice_v1"])


class FileCountsSchema(BaseModel):
    """How many files there are, in all and by status."""

    files: int = 0
    queued: int = 0
    processing: int = 0
    complete: int = 0
    needs_review: int = 0
    failed: int = 0
    cancelled: int = 0
    expired: int = 0


class BatchSchema(BaseModel):
    id: uuid.UUID
    name: str
    status: BatchStatus
    source: SourceSchema
    rules: list[RuleSchema]
    enriched: bool = Field(description="Whether a language model fills fields in each file.")
    counts: FileCountsSchema
    progress: float = Field(ge=0, le=1, description="The share of files that have ended.")
    error: ErrorSchema | None = Field(description="Why the ZIP as a whole failed.")
    run: int = Field(ge=1, description="Rises each time that failed files are retried.")
    retryable: bool
    cancellable: bool
    downloadable: bool
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    summary: dict[str, Any] | None = Field(
        default=None, description="Counts, tables by type and by error, totals, the slowest files, a tree by folder."
    )


class ReceivedSchema(BaseModel):
    batch: BatchSchema
    deduped_from: uuid.UUID | None = Field(description="The batch that the same request had made before.")


class BatchesSchema(BaseModel):
    batches: list[BatchSchema]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")
    active_count: int = Field(description="How many of your batches wait or are being worked.")


class BatchExplanationSchema(BaseModel):
    reason: str = Field(examples=["breaker"])
    sentence: str
    key: str = Field(description="The sentence in a form that can be translated, with `params`.")
    params: dict[str, Any]
    facts: dict[str, Any]


class FileSchema(BaseModel):
    doc_id: str = Field(description="Made of path and content: the same file has the same id in each batch.")
    path: str
    type: str = Field(description="What it is by its content.", examples=["pdf", "docx", "xlsx", "text"])
    bytes: int
    sha256: str
    mapping: str | None
    status: FileStatus
    error: ErrorSchema | None
    retry_count: int
    duration_ms: float | None
    reused: bool = Field(description="Its result is that of the same content elsewhere, so nothing had to be worked.")
    job_id: uuid.UUID | None
    review: str | None = Field(description="The page on which its values can be checked, if it was converted.")
    result_bytes: int | None
    finished_at: datetime | None


class FilesSchema(BaseModel):
    files: list[FileSchema]
    next: str | None


def batch_json(view: BatchView, summary: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "id": view.id,
        "name": view.name,
        "status": view.status,
        "source": {"name": view.source_name, "bytes": view.bytes, "sha256": view.sha256},
        "rules": view.rules,
        "enriched": view.enriched,
        "counts": {name: view.counts.get(name, 0) for name in FileCountsSchema.model_fields},
        "progress": round(view.progress, 4),
        "error": error_json(view.error),
        "run": view.run,
        "retryable": view.retryable,
        "cancellable": view.active,
        "downloadable": view.downloadable,
        "created_at": view.created_at,
        "updated_at": view.updated_at,
        "finished_at": view.finished_at,
        "summary": summary,
    }


def file_json(view: FileView) -> dict[str, Any]:
    return {
        "doc_id": view.doc_id,
        "path": view.path,
        "type": view.type,
        "bytes": view.bytes,
        "sha256": view.sha256,
        "mapping": view.mapping,
        "status": view.status,
        "error": error_json(view.error),
        "retry_count": view.retry_count,
        "duration_ms": round(view.milliseconds, 1) if view.milliseconds is not None else None,
        "reused": view.reused,
        "job_id": view.job_id,
        "review": view.review,
        "result_bytes": view.result_bytes,
        "finished_at": view.finished_at,
    }


def listing_json(listing: BatchListing) -> dict[str, Any]:
    return {
        "batches": [batch_json(view) for view in listing.batches],
        "next": listing.next,
        "active_count": listing.active_count,
    }


def files_json(listing: FileListing) -> dict[str, Any]:
    return {"files": [file_json(view) for view in listing.files], "next": listing.next}


def error_json(fault: BatchFault | None) -> dict[str, Any] | None:
    if fault is None:
        return None
    return {
        "code": fault.code,
        "error_type": fault.error_type,
        "message": fault.message,
        "key": fault.key,
        "params": fault.params,
    }
