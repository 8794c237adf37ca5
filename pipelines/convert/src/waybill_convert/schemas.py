"""The JSON of conversions, and its schemas for the OpenAPI document.

Functions write the JSON by hand, because a list of five hundred rows is served many times a second.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from waybill.messages import in_english
from waybill.web.schemas import ProblemSchema, Schema
from waybill_convert.status import ACTIVE, CONVERTED, Status
from waybill_convert.views import (
    ConversionView,
    Fault,
    Listing,
    NeededReview,
    Pause,
    Recognised,
    ScoredMapping,
    Uploaded,
)


def job_json(view: ConversionView) -> dict[str, Any]:
    self = f"/api/jobs/{view.id}"
    complete, active, converted = view.status is Status.COMPLETE, view.status in ACTIVE, view.status in CONVERTED
    reviewable = converted or view.status is Status.FAILED
    retryable = view.status in (Status.FAILED, Status.CANCELLED) and view.source_kept
    return {
        "id": str(view.id),
        "status": view.status.value,
        "dead_letter": view.dead_letter,
        "original_name": view.original_name,
        "bytes": view.bytes,
        "mapping": view.mapping,
        "requested_mapping": view.requested_mapping or view.mapping,
        "loss": view.loss,
        "recognition": recognition_json(view.recognition),
        "candidates": [scored_json(each) for each in view.candidates],
        "created_at": _time(view.created_at),
        "listed_at": _time(view.listed_at),
        "updated_at": _time(view.updated_at),
        "started_at": _time(view.started_at),
        "finished_at": _time(view.finished_at),
        "attempt": view.attempt,
        "max_attempts": view.max_attempts,
        "progress": view.progress,
        "progress_message": None if view.progress_message is None else in_english(view.progress_message),
        "retry_at": _time(view.retry_at),
        "remaining_seconds": view.remaining_seconds,
        "reused": view.reused,
        "stopping": view.stopping,
        "pinned": view.pinned,
        "on_hold": pause_json(view.on_hold),
        "revision": view.revision,
        "review": _review_json(view.review),
        "error": fault_json(view.error),
        "trace_url": view.trace_url,
        "links": {
            "self": self,
            "download": f"{self}/download" if complete else None,
            "provenance": f"{self}/provenance" if converted else None,
            "events": f"{self}/events",
            "explain": f"{self}/explain",
            "revisions": f"{self}/revisions" if reviewable else None,
            "review": f"/review/{view.id}" if reviewable else None,
            "approve": f"{self}/approve" if view.status is Status.NEEDS_REVIEW else None,
            "retry": f"{self}/retry" if retryable else None,
            "cancel": f"{self}/cancel" if active else None,
            "pin": f"{self}/pin" if view.status is not Status.EXPIRED else None,
        },
    }


def foreign_job_json(view: ConversionView) -> dict[str, Any]:
    """The same for an admin who may look at it, and not change it."""
    job = job_json(view)
    return {**job, "links": {**job["links"], "approve": None, "retry": None, "cancel": None, "pin": None}}


def recognition_json(found: Recognised | None) -> dict[str, Any] | None:
    if found is None:
        return None
    runner_up = scored_json(found.runner_up) if found.runner_up is not None else None
    return {"title": found.title, "score": found.score, "by": found.by, "runner_up": runner_up}


def scored_json(one: ScoredMapping) -> dict[str, Any]:
    return {"name": one.name, "title": one.title, "score": one.score}


def fault_json(fault: Fault | None) -> dict[str, Any] | None:
    if fault is None:
        return None
    return {
        "code": fault.code,
        "key": fault.key,
        "params": fault.params,
        "message": fault.message,
        "findings": fault.findings,
    }


def _review_json(review: NeededReview | None) -> dict[str, Any] | None:
    if review is None:
        return None
    return {
        "below": review.below,
        "count": review.count,
        "values": review.values,
        "approved_at": _time(review.approved_at),
        "approved_by": review.approved_by,
    }


def pause_json(pause: Pause | None) -> dict[str, Any] | None:
    if pause is None:
        return None
    reason = pause.reason
    return {"reason": str(reason), "key": reason.key, "params": dict(reason.params), "until": _time(pause.until)}


def listing_json(listing: Listing) -> dict[str, Any]:
    return {
        "jobs": [job_json(view) for view in listing.jobs],
        "deleted": [str(job_id) for job_id in listing.deleted],
        "next": listing.next,
        "since": listing.since,
        "active_count": listing.active_count,
        "counts": {"total": listing.total, **{status.value: count for status, count in listing.counts.items()}},
        "on_hold": pause_json(listing.on_hold),
    }


def uploaded_json(uploaded: Uploaded) -> dict[str, Any]:
    deduped = uploaded.deduped_from
    return {"job": job_json(uploaded.job), "deduped_from": str(deduped) if deduped else None}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


# For the OpenAPI document.


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


class PauseSchema(Schema):
    """The converter is having an issue. Waiting documents continue automatically once it works again."""

    reason: str = Field(description="One English sentence for the person who is waiting.")
    key: str = Field(description="The sentence's key, for other languages.", examples=["convert.paused"])
    params: dict[str, Any] = Field(description="What the sentence says beyond its key.")
    until: datetime | None = Field(description="When it is tried again; null while an operator decides.")


class JobErrorSchema(Schema):
    code: str = Field(examples=["GW_4XX"])
    key: str | None = Field(
        description="The sentence's key, for other languages; null for a sentence about the document itself, whose"
        " findings have keys.",
        examples=["gateway_call.busy"],
    )
    params: dict[str, Any] = Field(description="What the sentence says beyond its key.")
    message: str = Field(description="One English sentence for the person who is waiting.")
    findings: list[Any] = Field(description="What is wrong with the document, one entry each.")


class ScoredMappingSchema(Schema):
    """A mapping that a document might have chosen."""

    name: str = Field(examples=["coolblue_v1"])
    title: str = Field(examples=["Coolblue invoice"])
    score: int = Field(description="How much speaks for it, from 0 to 1,000.")


class RecognitionSchema(Schema):
    """Why a document chose its mapping."""

    title: str = Field(description="The mapping's title.")
    score: int = Field(description="How much speaks for it, from 1 to 1,000.")
    by: str = Field(description="What it was recognised by: `phrases` or `attachment`.", examples=["phrases"])
    runner_up: ScoredMappingSchema | None = Field(description="The next one; null if nothing speaks for any other.")


class LinksSchema(Schema):
    """What can be done with the job. A link is null if it is not possible now."""

    self: str
    download: str | None
    provenance: str | None
    events: str
    explain: str
    revisions: str | None
    review: str | None = Field(description="The page where a person looks at it.")
    approve: str | None
    retry: str | None
    cancel: str | None
    pin: str | None


StatusWord = Literal["queued", "processing", "complete", "needs_review", "expired", "failed", "cancelled"]


class NeededReviewSchema(Schema):
    """A person has to look at the result before anybody gets it, or had to."""

    below: int = Field(description="A value with a lower confidence is in doubt.")
    count: int = Field(description="How many values are in doubt.")
    values: list[str] = Field(description="The first 20 of them; the record names all.", examples=[["lines[3].amount"]])
    approved_at: datetime | None = Field(description="Null as long as nobody has looked.")
    approved_by: str | None = Field(description="`key:<name>`, or `session` for a browser that did not sign in.")


class JobSchema(Schema):
    """One document and its conversion."""

    model_config = _showing(job_json(_JOB))

    id: uuid.UUID
    status: StatusWord
    dead_letter: bool = Field(description="It failed because its attempts are used up. A retry may succeed.")
    original_name: str = Field(examples=["invoice-2508070002.pdf"])
    bytes: int
    mapping: str = Field(
        description="The mapping that it was converted by; until that is known, the one that was asked for.",
        examples=["pt_simon_invoice_v1"],
    )
    requested_mapping: str = Field(description="The mapping that was asked for.", examples=["auto"])
    loss: Literal["strict", "lenient"] | None = Field(
        description="What may be lost of an e-invoice, as was asked for; null if the mapping decides."
    )
    recognition: RecognitionSchema | None = Field(
        description="Why the document chose its mapping; null if it was named."
    )
    candidates: list[ScoredMappingSchema] = Field(
        description="Of a document that could not choose: the nearest mappings, the best first. Retry with one of them."
    )
    created_at: datetime
    listed_at: datetime = Field(description="When it was uploaded, or last uploaded again. Lists are ordered by this.")
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int = Field(description="The number of the current or last attempt; 0 before the first.")
    max_attempts: int
    progress: float | None = Field(description="From 0 to 1.")
    progress_message: str | None = Field(description="One English sentence.", examples=["Converting"])
    retry_at: datetime | None = Field(description="When it is tried again.")
    remaining_seconds: int | None = Field(
        description="Estimated from recent documents of its size; null if there is no estimate."
    )
    reused: bool = Field(description="The same document was uploaded again, and this job was reused.")
    stopping: bool = Field(description="It was asked to stop and will do so soon.")
    pinned: bool = Field(description="It is kept, whatever its age.")
    on_hold: PauseSchema | None
    revision: int = Field(description="How often it was corrected: the number of the revision that is downloaded.")
    review: NeededReviewSchema | None = Field(description="Null if nothing in it was in doubt.")
    error: JobErrorSchema | None
    trace_url: str | None = Field(
        description="Where an operator sees the job's trace; null if the server does not know where traces are shown.",
        examples=["https://jaeger.example.com/trace/0189000000007000800000000000001"],
    )
    links: LinksSchema


class CountsSchema(Schema):
    total: int
    queued: int
    processing: int
    complete: int
    needs_review: int
    expired: int
    failed: int
    cancelled: int


class ListingSchema(Schema):
    model_config = _showing(listing_json(_LISTING))

    jobs: list[JobSchema]
    deleted: list[uuid.UUID] = Field(description="With `since`: jobs that were deleted.")
    next: str | None = Field(
        description="If set, there is more: ask again with this as `cursor`, or as `since` if you asked with `since`."
    )
    since: str = Field(description="Send this as `since` to get what changes after this answer.")
    active_count: int = Field(description="Queued and processing jobs. At 0 there is nothing to poll for.")
    counts: CountsSchema = Field(description="Of all your jobs, regardless of filters.")
    on_hold: PauseSchema | None


class AdminJobSchema(JobSchema):
    """A job of any tenant, as an admin sees it."""

    model_config = _showing({**job_json(_JOB), "tenant": "acme", "owner": "tenant:acme"})

    tenant: str
    owner: str = Field(description="A tenant, or a browser's session.", examples=["tenant:acme"])


class AdminListingSchema(Schema):
    jobs: list[AdminJobSchema]
    next: uuid.UUID | None = Field(
        description="If set, there is more: ask again with this as `cursor`. A page with filters may be short."
    )


class UploadedSchema(Schema):
    model_config = _showing(uploaded_json(Uploaded(_JOB)))

    job: JobSchema
    deduped_from: uuid.UUID | None = Field(description="The job that this document had already; null for a new one.")


class FileAnswerSchema(Schema):
    file: str = Field(description="The name that was sent.")
    status: int = Field(description="201 for a new job, 200 for a reused one, anything else if it was refused.")
    job: JobSchema | None
    deduped_from: uuid.UUID | None
    problem: ProblemSchema | None


class UploadsSchema(Schema):
    files: list[FileAnswerSchema]


class EventSchema(Schema):
    at: datetime
    event: str = Field(examples=["succeeded"])
    detail: dict[str, Any]


class EventsSchema(Schema):
    events: list[EventSchema]


class ExplanationSchema(Schema):
    reason: str = Field(examples=["behind_others"])
    sentence: str = Field(examples=["It is waiting behind 3 jobs."])
    key: str = Field(description="The sentence's key, for other languages.", examples=["explain.behind"])
    params: dict[str, Any] = Field(description="What the sentence names; times as in `facts`.", examples=[{"count": 3}])
    facts: dict[str, Any]
