"""Made-up batches and files, in the form in which pages get them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime

from waybill_batches.status import RETRYABLE, BatchStatus, FileStatus
from waybill_batches.views import BatchFault, BatchView, FileView

NOW = datetime(2025, 8, 7, 12, 0, tzinfo=UTC)
LOCKED = BatchFault(
    "PARSE_ERROR", "The file has a password. Please remove it.", "batches.unreadable.encrypted_office", {}
)


def batch(status: BatchStatus = BatchStatus.COMPLETE, **changes: object) -> BatchView:
    view = BatchView(
        id=uuid.UUID(int=1),
        name="Accounting",
        status=status,
        source_name="Accounting.zip",
        bytes=48_213,
        sha256="a" * 64,
        rules=[],
        enriched=False,
        counts={},
        error=None,
        run=1,
        retryable=status in RETRYABLE,
        created_at=NOW,
        updated_at=NOW,
        finished_at=None,
    )
    return replace(view, **changes)  # type: ignore[arg-type]


def file(status: FileStatus = FileStatus.COMPLETE, **changes: object) -> FileView:
    done = status is FileStatus.COMPLETE
    view = FileView(
        number=0,
        doc_id="d" * 32,
        path="2025/july/a.pdf",
        type="pdf",
        bytes=48_213,
        sha256="a" * 64,
        mapping=None,
        status=status,
        error=LOCKED if status is FileStatus.FAILED else None,
        retry_count=0,
        milliseconds=12.5 if done else None,
        finished_at=NOW if done else None,
        reused=False,
        job_id=uuid.UUID(int=2),
        converted=False,
        result_key="x" if done else None,
        result_at=0 if done else None,
        result_bytes=10 if done else None,
        xml_key=None,
        xml_bytes=None,
    )
    return replace(view, **changes)  # type: ignore[arg-type]


SUMMARY = {
    "run": 1,
    "made_at": NOW.isoformat(),
    "duration_ms": 61_000,
    "counts": {"files": 12, "complete": 9, "needs_review": 1, "failed": 2},
    "reused": 3,
    "by_type": [
        {"type": "pdf", "files": 10, "complete": 9, "failed": 1, "bytes": 10_000_000, "ms": 950.0},
        {"type": "9", "files": 2, "complete": 1, "failed": 1, "bytes": 5, "ms": 0.0},
    ],
    "by_error": [
        {"code": "PARSE_ERROR", "error_type": "PARSE_ERROR", "message": LOCKED.message, "key": LOCKED.key, "params": {},
         "files": 1, "examples": ["1.pdf"]},
        {"code": "GW_4XX", "error_type": "PARSE_ERROR", "message": "", "key": LOCKED.key, "params": {}, "files": 1,
         "examples": ["2.pdf"]},
    ],
    "totals": [{"field": "1", "currency": "2", "sum": "-12345678901234567890.25", "files": 9}],
    "slowest": [{"doc_id": "d", "path": "1.pdf", "ms": 400.0}, {"doc_id": "e", "path": "2.pdf", "ms": 100.0}],
    "folders": {
        "name": "", "files": 12, "complete": 10, "failed": 2, "bytes": 10_000_005,
        "folders": [
            {"name": "1", "files": 8, "complete": 8, "failed": 0, "bytes": 9, "folders": [
                {"name": "2", "files": 8, "complete": 8, "failed": 0, "bytes": 9, "folders": []},
            ]},
        ],
    },
}  # fmt: skip
