"""The API's names for the state of a conversion. The engine has finer ones; a database trigger translates them."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    QUEUED = "queued"
    """It waits for a worker, for its next attempt, or until the converter works again."""
    PROCESSING = "processing"
    COMPLETE = "complete"
    NEEDS_REVIEW = "needs_review"
    """It has a result, which nobody gets before a person has looked at the values that are in doubt."""
    EXPIRED = "expired"
    """It was complete, and the result has been removed since."""
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = (Status.QUEUED, Status.PROCESSING)
CONVERTED = (Status.COMPLETE, Status.NEEDS_REVIEW)
"""There is a result, whether or not it can be downloaded yet."""
REUSABLE = (*ACTIVE, *CONVERTED)
"""While a conversion has one of these, the same document with the same mapping is not converted again."""
