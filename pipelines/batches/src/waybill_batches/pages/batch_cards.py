"""A batch in words: a row of the list, and the top of its own page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from waybill.web.languages import Language
from waybill_batches.pages.fault_words import fault_words
from waybill_batches.status import BatchStatus, FileStatus
from waybill_batches.views import BatchView

_ICONS = {BatchStatus.COMPLETE_WITH_ERRORS: "failed"}


@dataclass(frozen=True, slots=True)
class ShownTally:
    """How many files are in a state, in words."""

    look: str
    words: str


@dataclass(frozen=True, slots=True)
class BatchCard:
    id: str
    href: str
    name: str
    source: str
    """The ZIP's name, if it says more than the batch's."""
    look: str
    """The CSS class: one of the API's states."""
    icon: str
    word: str
    files: str
    size: str
    at: str
    at_words: str
    ago: str
    tallies: tuple[ShownTally, ...]
    going: str
    """How far it is; empty once it has ended."""
    progress: int | None
    """In percent. None if it has ended, or nobody knows yet how many files there are."""
    said: str
    """Why there is no result; empty if there is one, or may still be one."""
    download: str
    retry: str
    """The words of the button; empty for no button."""
    cancel: bool
    delete: bool


def batch_card(view: BatchView, now: datetime, language: Language) -> BatchCard:
    files = view.counts.get("files", 0)
    done = files - view.counts.get(FileStatus.QUEUED, 0) - view.counts.get(FileStatus.PROCESSING, 0)
    return BatchCard(
        id=str(view.id),
        href=f"/batches/{view.id}",
        name=view.name,
        source="" if view.source_name in (view.name, f"{view.name}.zip") else view.source_name,
        look=view.status.value,
        icon=_ICONS.get(view.status, view.status.value),
        word=language.say(f"batches.shown_states.{_state(view, files)}"),
        files=language.say("batches.row.files", count=files) if files else "",
        size=language.size(view.bytes),
        at=view.created_at.isoformat(),
        at_words=language.exactly(view.created_at),
        ago=language.ago(view.created_at, now),
        tallies=_tallies(view, language),
        going=_going(view, done, files, language),
        progress=round(view.progress * 100) if view.active and files else None,
        said=_said(view, language),
        download=f"/api/batches/{view.id}/download" if view.downloadable and not view.active else "",
        retry=_retry(view, language),
        cancel=view.active,
        delete=not view.active,
    )


def news(view: BatchView, language: Language) -> str:
    """What the live region announces when it changes: how a batch stands, without every single file."""
    if view.active:
        return language.say("batches.news.going", name=view.name)
    said = language.say("batches.news.ended", name=view.name, state=language.say(f"batches.states.{view.status}"))
    if view.failed:
        return language.say("batches.news.failed", said=said, count=view.failed)
    return said


def _state(view: BatchView, files: int) -> str:
    return "unpacking" if view.status is BatchStatus.PROCESSING and not files else view.status.value


def _tallies(view: BatchView, language: Language) -> tuple[ShownTally, ...]:
    shown = (FileStatus.COMPLETE, FileStatus.NEEDS_REVIEW, FileStatus.FAILED, FileStatus.CANCELLED)
    return tuple(
        ShownTally(status.value, language.say(f"batches.tally.{status}", count=count))
        for status in shown
        if (count := view.counts.get(status, 0))
    )


def _going(view: BatchView, done: int, files: int, language: Language) -> str:
    if not view.active:
        return ""
    if files:
        return language.say("batches.row.done", done=done, count=files)
    return language.say("batches.row.unpacks" if view.status is BatchStatus.PROCESSING else "batches.row.waits")


def _said(view: BatchView, language: Language) -> str:
    if view.status is BatchStatus.EXPIRED:
        return language.say("batches.expired")
    if view.status is not BatchStatus.FAILED:
        return ""
    if view.error is not None:
        return fault_words(view.error, language)
    return language.say("batches.row.none_read") if view.counts.get("files") else language.say("errors.UNKNOWN")


def _retry(view: BatchView, language: Language) -> str:
    if not view.retryable:
        return ""
    again = view.failed + view.counts.get(FileStatus.CANCELLED, 0)
    return language.say("batches.row.retry_files", count=again) if again else language.say("batches.row.retry")
