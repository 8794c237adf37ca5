"""A batch and its files as their owner sees them: rows, read for the API, the pages and the stream alike."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from waybill_batches.error_types import ErrorType, error_type
from waybill_batches.status import ACTIVE, DONE, BatchStatus, FileStatus

_FINAL = (FileStatus.COMPLETE, FileStatus.NEEDS_REVIEW, FileStatus.FAILED, FileStatus.CANCELLED, FileStatus.EXPIRED)
_CONVERTED = (FileStatus.COMPLETE, FileStatus.NEEDS_REVIEW)


@dataclass(frozen=True, slots=True)
class BatchFault:
    """Why something failed."""

    code: str
    message: str
    key: str | None
    params: dict[str, Any]

    @property
    def error_type(self) -> ErrorType:
        return error_type(self.code)

    @classmethod
    def of(cls, text: str | None) -> BatchFault | None:
        if text is None:
            return None
        found = json.loads(text)
        params = found.get("params")
        return cls(
            str(found.get("code") or "UNKNOWN"),
            str(found.get("message") or ""),
            found.get("key"),
            params if isinstance(params, dict) else {},
        )


@dataclass(frozen=True, slots=True)
class BatchView:
    id: uuid.UUID
    name: str
    status: BatchStatus
    source_name: str
    bytes: int
    sha256: str
    rules: list[dict[str, str]]
    enriched: bool
    counts: dict[str, int]
    """By status; `files` is all of them."""
    error: BatchFault | None
    run: int
    retryable: bool
    """Something of it can be worked again: its ZIP, or a file that failed or was cancelled, is still stored."""
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None

    @property
    def active(self) -> bool:
        return self.status in ACTIVE

    @property
    def progress(self) -> float:
        """The share of files that have ended; 0 until it is known how many there are."""
        if not self.active:
            return 1.0
        files = self.counts.get("files", 0)
        return sum(self.counts.get(one, 0) for one in _FINAL) / files if files else 0.0

    @property
    def failed(self) -> int:
        return self.counts.get(FileStatus.FAILED, 0)

    @property
    def complete(self) -> int:
        """Files that have a result, whether or not a person has to look first."""
        return sum(self.counts.get(one, 0) for one in _CONVERTED)

    @property
    def downloadable(self) -> bool:
        return self.complete > 0 and self.status in (*DONE, BatchStatus.CANCELLED, *ACTIVE)


@dataclass(frozen=True, slots=True)
class FileView:
    number: int
    doc_id: str
    path: str
    type: str
    bytes: int
    sha256: str
    mapping: str | None
    status: FileStatus
    error: BatchFault | None
    retry_count: int
    milliseconds: float | None
    finished_at: datetime | None
    reused: bool
    job_id: uuid.UUID | None
    converted: bool
    """Another pipeline converts it by a mapping, so it has a review page."""
    result_key: str | None
    result_at: int | None
    result_bytes: int | None
    xml_key: str | None
    xml_bytes: int | None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def review(self) -> str | None:
        return f"/review/{self.job_id}" if self.converted and self.job_id is not None else None


@dataclass(frozen=True, slots=True)
class BatchListing:
    batches: list[BatchView]
    next: str | None
    active_count: int


@dataclass(frozen=True, slots=True)
class FileListing:
    files: list[FileView]
    next: str | None


def batch_view(row: Any, counts: Mapping[str, int] | None) -> BatchView:
    """One row. `counts` are those of now, for a batch that is being worked."""
    by_status = dict(counts) if counts is not None else json.loads(row["counts"] or "{}")
    by_status["files"] = sum(number for name, number in by_status.items() if name != "files")
    return BatchView(
        id=row["id"],
        name=row["name"],
        status=BatchStatus(row["status"]),
        source_name=row["source_name"],
        bytes=row["bytes"],
        sha256=row["sha256"],
        rules=json.loads(row["rules"]),
        enriched=row["enriched"],
        counts=by_status,
        error=BatchFault.of(row["error"]),
        run=row["run"],
        retryable=row["retryable"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        finished_at=row["finished_at"],
    )


def file_view(row: Any) -> FileView:
    status = FileStatus.PROCESSING if row["running"] else FileStatus(row["status"])
    return FileView(
        number=row["number"],
        doc_id=row["doc_id"],
        path=row["path"],
        type=row["type"],
        bytes=row["bytes"],
        sha256=row["sha256"],
        mapping=row["mapping"],
        status=status,
        error=BatchFault.of(row["error"]),
        retry_count=row["tries"] + (row["attempts"] or 0),
        milliseconds=row["milliseconds"],
        finished_at=row["finished_at"],
        reused=row["reused"],
        job_id=row["job_id"],
        converted=row["mapping"] is not None,
        result_key=row["result_key"],
        result_at=row["result_at"],
        result_bytes=row["result_bytes"],
        xml_key=row["xml_key"],
        xml_bytes=row["xml_bytes"],
    )
