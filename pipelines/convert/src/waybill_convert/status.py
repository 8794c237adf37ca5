"""The API's words for where a conversion stands. The engine's are finer; a trigger translates (migration 0006)."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    QUEUED = "queued"
    """Waits: for a worker, for its next try, or until the converter is well again."""
    PROCESSING = "processing"
    COMPLETE = "complete"
    EXPIRED = "expired"
    """It was complete; the result has been removed since."""
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = (Status.QUEUED, Status.PROCESSING)
REUSABLE = (Status.QUEUED, Status.PROCESSING, Status.COMPLETE)
"""The same document with the same mapping need not be converted again while one of these is there."""
