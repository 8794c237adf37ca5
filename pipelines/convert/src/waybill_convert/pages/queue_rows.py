"""One conversion as a row of the queue. Every word is chosen here; the template only arranges them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from waybill.errors import Code
from waybill.web.languages import Language
from waybill_convert.pages.fault_words import fault_words, finding_words
from waybill_convert.pages.recognition_words import mapping_title, recognition_words
from waybill_convert.status import CONVERTED, REUSABLE, Status
from waybill_convert.views import ConversionView, Fault
from waybill_documents.catalogue import AUTO

_SHOWN_FINDINGS = 50
"""A document of 2,000 lines can have as many findings; the first ones are enough to see what is wrong."""


@dataclass(frozen=True, slots=True)
class OfferedMapping:
    """A button: convert the document by this one."""

    name: str
    title: str
    words: str


@dataclass(frozen=True, slots=True)
class QueueRow:
    id: str
    short: str
    look: str
    """The CSS class: one of the API's states."""
    icon: str
    word: str
    name: str
    size: str
    mapping: str
    at: str
    at_words: str
    ago: str
    recognised: str = ""
    """Why its document chose the mapping, in one sentence; empty if the mapping was named."""
    near: tuple[OfferedMapping, ...] = ()
    """The mappings to convert a document by that could not choose one: those that something speaks for."""
    others: tuple[OfferedMapping, ...] = ()
    """The others."""
    reused: bool = False
    attempt: str = ""
    going: str = ""
    progress: int | None = None
    error: str = ""
    findings: tuple[str, ...] = ()
    findings_word: str = ""
    check: str = ""
    """Where to look at a result that is in doubt."""
    review: str = ""
    download: str = ""
    retry: bool = False
    cancel: bool = False
    pin: str = ""
    """What the pin button does, `pin` or `unpin`; empty for no button."""
    pin_word: str = ""
    pin_name: str = ""
    upload_again: bool = False


def row(job: ConversionView, now: datetime, language: Language) -> QueueRow:
    id_ = str(job.id)
    status = job.status
    held = status is Status.QUEUED and job.on_hold is not None
    in_doubt = status is Status.NEEDS_REVIEW
    error = _error(job, language)
    found, findings_word = _findings(job, error, language)
    return QueueRow(
        id=id_,
        short=id_[-6:],
        look=status.value,
        icon="hold" if held else "doubt" if in_doubt else status.value,
        word=language.say(f"convert.states.{'held' if held else 'stopping' if job.stopping else status}"),
        name=job.original_name,
        size=language.size(job.bytes),
        mapping=language.say("convert.row.auto") if job.mapping == AUTO else job.mapping,
        at=job.listed_at.isoformat(),
        at_words=language.exactly(job.listed_at),
        ago=language.ago(job.listed_at, now),
        recognised=recognition_words(job, language),
        near=_offered(job, language, near=True),
        others=_offered(job, language, near=False),
        reused=job.reused and status in REUSABLE,
        attempt=_attempt(job, language),
        going=_going(job, now, language),
        progress=round((job.progress or 0) * 100) if status is Status.PROCESSING and not job.stopping else None,
        error=error,
        findings=found,
        findings_word=findings_word,
        check=f"/review/{id_}" if in_doubt else "",
        review=f"/review/{id_}" if status in (Status.COMPLETE, Status.FAILED) else "",
        download=f"/api/jobs/{id_}/download" if status is Status.COMPLETE else "",
        retry=job.source_kept and not job.candidates and status in (Status.FAILED, Status.CANCELLED),
        cancel=status in (Status.QUEUED, Status.PROCESSING) and not job.stopping,
        **_pin(job, language),
        upload_again=status is Status.EXPIRED or (not job.source_kept and status in (Status.FAILED, Status.CANCELLED)),
    )


def _offered(job: ConversionView, language: Language, *, near: bool) -> tuple[OfferedMapping, ...]:
    if not job.source_kept or job.status is not Status.FAILED:
        return ()
    titles = {each.name: mapping_title(each.name, each.title, language) for each in job.candidates}
    return tuple(
        OfferedMapping(
            each.name,
            language.say("convert.row.as_candidate", title=titles[each.name], score=each.score),
            language.say("convert.row.as_candidate_name", title=titles[each.name], name=job.original_name),
        )
        for each in job.candidates
        if (each.score > 0) is near
    )


def _pin(job: ConversionView, language: Language) -> dict[str, str]:
    """A pin button for jobs that have something to keep: a result, or a document to retry with."""
    ended = job.status in (Status.FAILED, Status.CANCELLED) and job.source_kept
    pin = "unpin" if job.pinned else "pin" if ended or job.status in CONVERTED else ""
    if not pin:
        return {}
    return {
        "pin": pin,
        "pin_word": language.say(f"convert.row.{pin}"),
        "pin_name": language.say(f"convert.row.{pin}_name", name=job.original_name),
    }


def _attempt(job: ConversionView, language: Language) -> str:
    """The attempt; empty for the first one, which needs no mention."""
    return language.say("convert.row.attempt", attempt=job.attempt, most=job.max_attempts) if job.attempt > 1 else ""


def _going(job: ConversionView, now: datetime, language: Language) -> str:
    """What a waiting or running job says about itself, or one that waits for a person."""
    if job.status is Status.NEEDS_REVIEW and job.review is not None:
        return language.say("convert.row.in_doubt", count=job.review.count)
    if job.status is Status.PROCESSING:
        if job.stopping:
            return language.say("convert.row.stops")
        if job.remaining_seconds:
            return language.say("convert.row.remaining", wait=language.wait(job.remaining_seconds))
        return language.tell_stored(job.progress_message or "")
    if job.status is not Status.QUEUED:
        return ""
    if job.on_hold is not None:
        return language.say("convert.row.held")
    if job.retry_at is not None and job.retry_at > now:
        why = f"{fault_words(job.error, language)} " if job.error else ""
        return why + language.say("convert.row.retry_in", wait=language.wait((job.retry_at - now).total_seconds()))
    return ""


def _error(job: ConversionView, language: Language) -> str:
    if job.status is Status.EXPIRED:
        return language.say("convert.row.expired")
    if job.status is not Status.FAILED:
        return ""
    return fault_words(job.error or Fault(Code.UNKNOWN, ""), language)


def _findings(job: ConversionView, error: str, language: Language) -> tuple[tuple[str, ...], str]:
    """The document's findings, unless the row's error says the same."""
    if job.status is not Status.FAILED or job.error is None:
        return (), ""
    found = [text for finding in job.error.findings if (text := _finding(finding, language))]
    if not found or found == [error]:
        return (), ""
    word = language.say("convert.row.findings", count=len(found))
    if len(found) > _SHOWN_FINDINGS:
        rest = len(found) - _SHOWN_FINDINGS
        found = [*found[:_SHOWN_FINDINGS], language.say("convert.row.more_findings", count=rest)]
    return tuple(found), word


def _finding(finding: Any, language: Language) -> str:
    said = finding_words(finding, language)
    page = finding.get("page") if said else None
    if isinstance(page, int) and not isinstance(page, bool):
        return language.say("convert.row.on_page", page=page, finding=said)
    return said
