"""Conversions as their owner sees them. The service makes these views, and the API and the pages show them."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from waybill.messages import Message
from waybill.telemetry.trace_links import TraceLinks
from waybill_convert.estimates import Estimates
from waybill_convert.status import CONVERTED, Status
from waybill_documents.catalogue import AUTO
from waybill_engine.models import State


@dataclass(frozen=True, slots=True)
class Pause:
    """The converter is having an issue: conversions wait for it, and nothing is lost. The API calls it `on_hold`."""

    reason: Message
    until: datetime | None
    """When the converter is tried again; None while an operator decides."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the last attempt failed, as the job's row keeps it."""

    code: str
    message: str
    """The English sentence of that moment."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    key: str | None = None
    """The message's key; None for a sentence that has none, and for jobs that failed before there were keys."""
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NeededReview:
    """That a person has to look at a result first, or had to."""

    below: int
    """The confidence from which on a value is not in doubt."""
    count: int
    """How many values are in doubt."""
    values: list[str]
    """The first of them, as in `net` and `lines[213].amount`."""
    approved_at: datetime | None
    """When a person approved it, or corrected it; None if nobody has."""
    approved_by: str | None


@dataclass(frozen=True, slots=True)
class ScoredMapping:
    """A mapping that a document might have chosen, and how much speaks for it."""

    name: str
    title: str
    score: int

    @classmethod
    def of(cls, given: Any) -> ScoredMapping | None:
        """What the document library says of one; None for anything else."""
        match given:
            case {"name": str(name), "title": str(title), "score": int(score)}:
                return cls(name, title, score)
        return None


@dataclass(frozen=True, slots=True)
class Recognised:
    """Why a document chose its mapping."""

    title: str
    score: int
    by: str
    runner_up: ScoredMapping | None


@dataclass(frozen=True, slots=True)
class ConversionView:
    """One conversion."""

    id: uuid.UUID
    status: Status
    dead_letter: bool
    original_name: str
    bytes: int
    mapping: str
    """The one that it was converted by; until that is known, the one that was asked for."""
    created_at: datetime
    listed_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    max_attempts: int
    progress: float | None
    progress_message: str | None
    """A message key, which the API and the pages put into words; or a text, which they show as it is."""
    retry_at: datetime | None
    remaining_seconds: int | None
    reused: bool
    stopping: bool
    on_hold: Pause | None
    error: Fault | None
    source_kept: bool
    """Whether the document is still stored, so that the job can be retried."""
    revision: int = 0
    """How many times it was corrected: the number of the revision that is downloaded."""
    review: NeededReview | None = None
    """None if nothing was ever in doubt."""
    pinned: bool = False
    """Whether its owner wants it kept, whatever its age."""
    requested_mapping: str = ""
    """The one that was asked for, if it is another one than `mapping`: `auto`."""
    loss: str | None = None
    """What may be lost of an e-invoice, as was asked for; None if the mapping decides."""
    recognition: Recognised | None = None
    """Why the document chose its mapping; None if it was named."""
    candidates: tuple[ScoredMapping, ...] = ()
    """Of a document that chose none: the nearest ones, the best first."""
    trace_url: str | None = None
    """Where its trace is shown; None if nobody has said where traces are."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    job: ConversionView
    deduped_from: uuid.UUID | None = None
    """The job that existed already; None for a new one."""


@dataclass(frozen=True, slots=True)
class Listing:
    jobs: list[ConversionView]
    next: str | None
    """The cursor of the next page; None on the last one."""
    since: str
    """The cursor for everything that changes after this listing."""
    counts: dict[Status, int]
    on_hold: Pause | None
    deleted: list[uuid.UUID] = field(default_factory=list)
    """Jobs that were deleted; only in answers to `since`."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def active_count(self) -> int:
        return self.counts[Status.QUEUED] + self.counts[Status.PROCESSING]


@dataclass(frozen=True, slots=True)
class OwnedView:
    """A conversion, and whose it is, as an admin sees it."""

    job: ConversionView
    tenant: str
    owner: str


@dataclass(frozen=True, slots=True)
class EverybodysListing:
    jobs: list[OwnedView]
    next: uuid.UUID | None


def view(row: Any, estimates: Estimates, pause: Pause | None, trace_links: TraceLinks) -> ConversionView:
    """One row, as its owner sees it."""
    status, state = Status(row["status"]), State(row["state"])
    running = state is State.RUNNING
    remaining = None
    if running and row["running_for"] is not None:
        remaining = estimates.remaining(row["bytes"], max(0.0, row["running_for"]))
    return ConversionView(
        id=row["job_id"],
        status=status,
        dead_letter=state is State.DEAD_LETTER and status not in CONVERTED,
        original_name=row["original_name"],
        bytes=row["bytes"],
        mapping=row["mapping"],
        created_at=row["created_at"],
        listed_at=row["listed_at"],
        updated_at=row["updated_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        attempt=min(row["max_attempts"], row["attempts"] + (state in (State.RUNNING, State.SUCCEEDED))),
        max_attempts=row["max_attempts"],
        progress=row["progress"],
        progress_message=row["progress_message"] if running else None,
        retry_at=row["run_at"] if state is State.SCHEDULED else None,
        remaining_seconds=remaining,
        reused=row["reused_at"] is not None,
        stopping=running and row["cancel_requested_at"] is not None,
        on_hold=pause if status is Status.QUEUED else None,
        error=(error := _fault(row, status)),
        requested_mapping=row["requested_mapping"] if row["requested_mapping"] != row["mapping"] else "",
        loss=row["loss"],
        recognition=recognised(row),
        candidates=_candidates(row, error),
        revision=row["revision"],
        review=_review(row),
        source_kept=source_kept(row),
        pinned=row["pinned_at"] is not None,
        trace_url=trace_links.of(row["job_id"], row["traceparent"]),
    )


def recognised(row: Any) -> Recognised | None:
    """Why the row's document chose its mapping; None if it was named, or is not known yet."""
    match found := _object(row["recognition"]):
        case {"title": str(title), "score": int(score), "by": str(by)}:
            return Recognised(title, score, by, ScoredMapping.of(found.get("runner_up")))
    return None


def _candidates(row: Any, error: Fault | None) -> tuple[ScoredMapping, ...]:
    if error is None or row["requested_mapping"] != AUTO or not str(error.key).startswith("recognition."):
        return ()
    offered = error.params.get("candidates")
    scored = (ScoredMapping.of(each) for each in (offered if isinstance(offered, list) else ()))
    return tuple(each for each in scored if each is not None)


def source_kept(row: Any) -> bool:
    """Whether the document is still stored, as far as its row knows."""
    return row["upload_deleted_at"] is None and row["upload_missing_at"] is None


def _fault(row: Any, status: Status) -> Fault | None:
    if row["error_code"] is None or status in (*CONVERTED, Status.EXPIRED):
        return None
    detail = _object(row["error_detail"])
    findings, key, params = detail.get("findings"), detail.get("key"), detail.get("params")
    return Fault(
        row["error_code"],
        row["error_message"] or "",
        findings if isinstance(findings, list) else [],
        key if isinstance(key, str) else None,
        params if isinstance(params, dict) else {},
    )


def _review(row: Any) -> NeededReview | None:
    if row["doubts"] is None:
        return None
    doubts = _object(row["doubts"])
    return NeededReview(
        doubts.get("below", 0), doubts.get("count", 0), doubts.get("values", []), row["approved_at"], row["approved_by"]
    )


def _object(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}
