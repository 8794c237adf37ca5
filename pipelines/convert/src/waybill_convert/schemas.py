"""The JSON of the API: how a conversion is written down, and the same as models for the OpenAPI document.

Written by hand and not through the models: a list of five hundred rows is served many times a second.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from waybill_convert.models import ConversionView, Hold, Listing, Uploaded
from waybill_convert.status import ACTIVE, Status


def job_json(view: ConversionView) -> dict[str, Any]:
    self = f"/api/jobs/{view.id}"
    complete, active = view.status is Status.COMPLETE, view.status in ACTIVE
    retryable = view.status in (Status.FAILED, Status.CANCELLED) and view.source_kept
    return {
        "id": str(view.id),
        "status": view.status.value,
        "dead_letter": view.dead_letter,
        "original_name": view.original_name,
        "bytes": view.bytes,
        "mapping": view.mapping,
        "created_at": _time(view.created_at),
        "listed_at": _time(view.listed_at),
        "updated_at": _time(view.updated_at),
        "started_at": _time(view.started_at),
        "finished_at": _time(view.finished_at),
        "attempt": view.attempt,
        "max_attempts": view.max_attempts,
        "progress": view.progress,
        "progress_message": view.progress_message,
        "retry_at": _time(view.retry_at),
        "remaining_seconds": view.remaining_seconds,
        "reused": view.reused,
        "stopping": view.stopping,
        "pinned": view.pinned,
        "on_hold": hold_json(view.on_hold),
        "revision": view.revision,
        "error": None
        if view.error is None
        else {"code": view.error.code, "message": view.error.message, "findings": view.error.findings},
        "links": {
            "self": self,
            "download": f"{self}/download" if complete else None,
            "provenance": f"{self}/provenance" if complete else None,
            "events": f"{self}/events",
            "explain": f"{self}/explain",
            "revisions": f"{self}/revisions" if complete or view.status is Status.FAILED else None,
            "retry": f"{self}/retry" if retryable else None,
            "cancel": f"{self}/cancel" if active else None,
            "pin": f"{self}/pin" if view.status is not Status.EXPIRED else None,
        },
    }


def hold_json(hold: Hold | None) -> dict[str, Any] | None:
    return None if hold is None else {"reason": hold.reason, "until": _time(hold.until)}


def listing_json(listing: Listing) -> dict[str, Any]:
    return {
        "jobs": [job_json(view) for view in listing.jobs],
        "deleted": [str(job_id) for job_id in listing.deleted],
        "next": listing.next,
        "since": listing.since,
        "active_count": listing.active_count,
        "counts": {"total": listing.total, **{status.value: count for status, count in listing.counts.items()}},
        "on_hold": hold_json(listing.on_hold),
    }


def uploaded_json(uploaded: Uploaded) -> dict[str, Any]:
    deduped = uploaded.deduped_from
    return {"job": job_json(uploaded.job), "deduped_from": str(deduped) if deduped else None}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


# For the OpenAPI document.


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _showing(example: dict[str, Any]) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"example": example})


def _moment(second: int) -> datetime:
    return datetime(2026, 3, 2, 9, 30, second, tzinfo=UTC)


_JOB = ConversionView(
    id=uuid.UUID("01890000-0000-7000-8000-000000000001"),
    status=Status.COMPLETE,
    dead_letter=False,
    original_name="invoice-2508070002.pdf",
    bytes=184_320,
    mapping="pt_simon_invoice_v1",
    created_at=_moment(0),
    listed_at=_moment(0),
    updated_at=_moment(2),
    started_at=_moment(1),
    finished_at=_moment(2),
    attempt=1,
    max_attempts=4,
    progress=1.0,
    progress_message=None,
    retry_at=None,
    remaining_seconds=None,
    reused=False,
    stopping=False,
    on_hold=None,
    error=None,
    source_kept=True,
)
_LISTING = Listing([_JOB], None, "czEyMzQ", dict.fromkeys(Status, 0) | {Status.COMPLETE: 1}, None)


class HoldShape(_Shape):
    """The converter is having an issue. What waits goes on by itself when it is well again."""

    reason: str
    until: datetime | None = Field(description="When it is tried again; null while an operator decides.")


class FaultShape(_Shape):
    code: str = Field(examples=["GW_4XX"])
    message: str = Field(description="One sentence for the person who is waiting.")
    findings: list[Any] = Field(description="What is wrong with the document, one entry each.")


class LinksShape(_Shape):
    """Where to go from here. Null: not now."""

    self: str
    download: str | None
    provenance: str | None
    events: str
    explain: str
    revisions: str | None
    retry: str | None
    cancel: str | None
    pin: str | None


StatusWord = Literal["queued", "processing", "complete", "expired", "failed", "cancelled"]


class JobShape(_Shape):
    """One document and what becomes of it."""

    model_config = _showing(job_json(_JOB))

    id: uuid.UUID
    status: StatusWord
    dead_letter: bool = Field(description="It failed because its tries are used up, not for good.")
    original_name: str = Field(examples=["invoice-2508070002.pdf"])
    bytes: int
    mapping: str = Field(examples=["pt_simon_invoice_v1"])
    created_at: datetime
    listed_at: datetime = Field(description="Its place in the list: uploaded, or last uploaded again.")
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int = Field(description="Which try this is or was; 0 before the first.")
    max_attempts: int
    progress: float | None = Field(description="From 0 to 1.")
    progress_message: str | None
    retry_at: datetime | None = Field(description="When it is tried again.")
    remaining_seconds: int | None = Field(description="By what recent documents of its size took; null if unclear.")
    reused: bool = Field(description="The same document was uploaded again, and this result served for it.")
    stopping: bool = Field(description="It was asked to stop and is about to.")
    pinned: bool = Field(description="It is kept whatever its age.")
    on_hold: HoldShape | None
    revision: int = Field(description="How often it was corrected: the number of what is downloaded.")
    error: FaultShape | None
    links: LinksShape


class CountsShape(_Shape):
    total: int
    queued: int
    processing: int
    complete: int
    expired: int
    failed: int
    cancelled: int


class ListingShape(_Shape):
    model_config = _showing(listing_json(_LISTING))

    jobs: list[JobShape]
    deleted: list[uuid.UUID] = Field(description="With `since`: jobs that are gone.")
    next: str | None = Field(
        description="There is more: ask again with this as `cursor`, or as `since` if you asked with `since`."
    )
    since: str = Field(description="Ask with it as `since` for what changes after this answer.")
    active_count: int = Field(description="Queued and processing ones. At 0 there is nothing to poll for.")
    counts: CountsShape = Field(description="Of all your jobs, whatever the filters.")
    on_hold: HoldShape | None


class UploadedShape(_Shape):
    model_config = _showing(uploaded_json(Uploaded(_JOB)))

    job: JobShape
    deduped_from: uuid.UUID | None = Field(description="The job that this document was uploaded for before.")


class ProblemShape(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(examples=["NOT_FOUND"])


class FileAnswerShape(_Shape):
    file: str = Field(description="The name that was sent.")
    status: int = Field(description="201 new, 200 reused, anything else refused.")
    job: JobShape | None
    deduped_from: uuid.UUID | None
    problem: ProblemShape | None


class UploadsShape(_Shape):
    files: list[FileAnswerShape]


class EventShape(_Shape):
    at: datetime
    event: str = Field(examples=["succeeded"])
    detail: dict[str, Any]


class EventsShape(_Shape):
    events: list[EventShape]


class ExplanationShape(_Shape):
    reason: str = Field(examples=["behind_others"])
    sentence: str = Field(examples=["It is waiting behind 3 jobs."])
    facts: dict[str, Any]


class MappingsShape(_Shape):
    mappings: list[str]
    default: str


class ErasureShape(_Shape):
    """What became of a request to forget everything."""

    finished: bool = Field(description="Nothing is left. Otherwise the rest goes by itself, what still runs last.")
    jobs: int
    files: int


class SessionShape(_Shape):
    signed_in: bool
    tenant: str
    permissions: list[str]
