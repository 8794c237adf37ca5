"""The API's words for the state of a batch, and of a file in it."""

from __future__ import annotations

from enum import StrEnum


class BatchStatus(StrEnum):
    QUEUED = "queued"
    """It waits to be unpacked."""
    PROCESSING = "processing"
    COMPLETE = "complete"
    COMPLETE_WITH_ERRORS = "complete_with_errors"
    """Every file was worked, and some failed."""
    FAILED = "failed"
    """The ZIP could not be unpacked, or no file in it could be worked."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """It had results, and they have been removed since."""


class FileStatus(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    """Its job runs. No row says so: it follows from the job."""
    COMPLETE = "complete"
    NEEDS_REVIEW = "needs_review"
    """It was converted, and a person has to look before anybody gets the result."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


ACTIVE = (BatchStatus.QUEUED, BatchStatus.PROCESSING)
DONE = (BatchStatus.COMPLETE, BatchStatus.COMPLETE_WITH_ERRORS)
"""It has results, and they are there."""
REUSABLE = (*ACTIVE, *DONE)
"""While a batch has one of these, the same ZIP is not worked again."""
RETRYABLE = (BatchStatus.COMPLETE_WITH_ERRORS, BatchStatus.FAILED, BatchStatus.CANCELLED)


def outcome(complete: int, failed: int, cancelled: int) -> BatchStatus:
    """How a batch ended whose files ended like this. `complete` counts those that wait for a person, too."""
    if complete and not failed and not cancelled:
        return BatchStatus.COMPLETE
    if complete:
        return BatchStatus.COMPLETE_WITH_ERRORS
    return BatchStatus.FAILED if failed or not cancelled else BatchStatus.CANCELLED
