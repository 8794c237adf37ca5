"""The API's names for the state of a conversion. The engine has finer ones; a database trigger translates them."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    QUEUED = "queued"
    """It waits for a worker, for its next attempt, or until the converter works again."""
    PROCESSING = "processing"
    COMPLETE = "complete"
    EXPIRED = "expired"
    """It was complete, and the result has been removed since."""
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = (Status.QUEUED, Status.PROCESSING)
REUSABLE = (Status.QUEUED, Status.PROCESSING, Status.COMPLETE)
"""While a conversion has one of these, the same document with the same mapping is not converted again."""
