"""One conversion as a row of the queue: every word on it is chosen here, so that the template only places them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from waybill.convert.models import ConversionView
from waybill.convert.status import Status
from waybill_api.pages import words

_WORDS = {
    Status.QUEUED: "Waiting",
    Status.PROCESSING: "Converting…",
    Status.COMPLETE: "Ready",
    Status.EXPIRED: "Expired",
    Status.FAILED: "Failed",
    Status.CANCELLED: "Cancelled",
}
_SHOWN_FINDINGS = 50
"""A document of 2,000 lines can have as many faults; the first ones are enough to see what is wrong."""


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    short: str
    look: str
    """The style: one of the API's status words."""
    icon: str
    word: str
    name: str
    size: str
    mapping: str
    at: str
    at_words: str
    ago: str
    reused: bool = False
    attempt: str = ""
    going: str = ""
    progress: int | None = None
    error: str = ""
    findings: tuple[str, ...] = ()
    findings_word: str = ""
    download: str = ""
    retry: bool = False
    cancel: bool = False
    upload_again: bool = False


def row(job: ConversionView, now: datetime) -> Row:
    id_ = str(job.id)
    status = job.status
    held = status is Status.QUEUED and job.on_hold is not None
    found, findings_word = _findings(job)
    return Row(
        id=id_,
        short=id_[-6:],
        look=status.value,
        icon="hold" if held else status.value,
        word="On hold" if held else "Stopping…" if job.stopping else _WORDS[status],
        name=job.original_name,
        size=words.size(job.bytes),
        mapping=job.mapping,
        at=job.listed_at.isoformat(),
        at_words=words.exactly(job.listed_at),
        ago=words.ago(job.listed_at, now),
        reused=job.reused and status in (Status.COMPLETE, Status.QUEUED, Status.PROCESSING),
        attempt=_attempt(job),
        going=_going(job, now),
        progress=round((job.progress or 0) * 100) if status is Status.PROCESSING and not job.stopping else None,
        error=_error(job),
        findings=found,
        findings_word=findings_word,
        download=f"/api/jobs/{id_}/download" if status is Status.COMPLETE else "",
        retry=job.source_kept and status in (Status.FAILED, Status.CANCELLED),
        cancel=status in (Status.QUEUED, Status.PROCESSING) and not job.stopping,
        upload_again=status is Status.EXPIRED or (not job.source_kept and status in (Status.FAILED, Status.CANCELLED)),
    )


def _attempt(job: ConversionView) -> str:
    """Nobody cares about the first try."""
    return f"Attempt {job.attempt} of {job.max_attempts}" if job.attempt > 1 else ""


def _going(job: ConversionView, now: datetime) -> str:
    """What a row that is still under way says about itself."""
    if job.status is Status.PROCESSING:
        if job.stopping:
            return "Stops as soon as it can"
        if job.remaining_seconds:
            return f"~{words.wait(job.remaining_seconds)} remaining"
        return job.progress_message or ""
    if job.status is not Status.QUEUED:
        return ""
    if job.on_hold is not None:
        return "Converter is having an issue"
    if job.retry_at is not None and job.retry_at > now:
        why = f"{job.error.message} " if job.error else ""
        return f"{why}Retry in {words.wait((job.retry_at - now).total_seconds())}"
    return ""


def _error(job: ConversionView) -> str:
    if job.status is Status.FAILED:
        message = job.error.message if job.error else ""
        return message or "Something went wrong on our side."
    if job.status is Status.EXPIRED:
        return "The result was removed after its time. Upload the document again to convert it anew."
    return ""


def _findings(job: ConversionView) -> tuple[tuple[str, ...], str]:
    """The faults found in the document, unless they are what the row says already."""
    if job.status is not Status.FAILED or job.error is None:
        return (), ""
    found = [text for finding in job.error.findings if (text := _finding(finding))]
    if not found or found == [job.error.message]:
        return (), ""
    word = words.count(len(found), "thing to look at", "things to look at")
    if len(found) > _SHOWN_FINDINGS:
        rest = len(found) - _SHOWN_FINDINGS
        found = [*found[:_SHOWN_FINDINGS], f"… and {rest} more"]
    return tuple(found), word


def _finding(finding: Any) -> str:
    """Documents are hostile, and so may be what is said about them: anything but a sentence is left out."""
    if not isinstance(finding, dict) or not isinstance(finding.get("message"), str):
        return ""
    page = finding.get("page")
    where = f"Page {page}: " if isinstance(page, int) and not isinstance(page, bool) else ""
    return f"{where}{finding['message']}"
