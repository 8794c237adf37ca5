"""`/queue`: every upload and its state. htmx gets only the part of the page that changes."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from starlette.responses import RedirectResponse, Response

from waybill.web.languages import Language, language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import Visitor
from waybill_convert.pages.queue_rows import QueueRow, row
from waybill_convert.permissions import Editor, Reader
from waybill_convert.status import ACTIVE, Status
from waybill_convert.views import Listing
from waybill_convert.web_context import Shared

router = APIRouter(include_in_schema=False)

PAGE = 100
"""Rows on a page, unless the address has a `limit`."""
_MOST = 500
_LONGEST_WORDS = 200

_FILTERS = (
    ("all", "", "convert.queue_page.total"),
    ("active", "active", "convert.queue_page.active"),
    ("ready", "complete", "convert.queue_page.ready"),
    ("in-doubt", Status.NEEDS_REVIEW, "convert.queue_page.review"),
    ("failed", "failed", "convert.queue_page.failed"),
)


@dataclass(frozen=True, slots=True)
class QueueQuery:
    """What the address asks for: which rows, and from which cursor on."""

    status: str = ""
    words: str = ""
    cursor: str = ""
    limit: int = PAGE

    @property
    def statuses(self) -> tuple[Status, ...]:
        if self.status == "active":
            return ACTIVE
        return (Status(self.status),) if self.status else ()

    def query(self, **other: str) -> str:
        """The address's query with some parts changed, and without default values."""
        limit = "" if self.limit == PAGE else str(self.limit)
        values = {"status": self.status, "q": self.words, "cursor": self.cursor, "limit": limit, **other}
        text = urlencode({name: value for name, value in values.items() if value})
        return f"?{text}" if text else ""


def shown(status: str = "", q: str = "", cursor: str = "", limit: str = "") -> QueueQuery:
    """Read an address leniently: a mistyped one shows everything rather than an error."""
    known = status == "active" or status in set(Status)
    rows = int(limit) if limit.isascii() and limit.isdigit() and len(limit) < 9 else PAGE
    text = "".join(character for character in q if character.isprintable()).strip()[:_LONGEST_WORDS]
    return QueueQuery(status if known else "", text, cursor[:200], max(1, min(rows, _MOST)))


async def _asked(status: str = "", q: str = "", cursor: str = "", limit: str = "") -> QueueQuery:
    """`shown` as a dependency. It is a coroutine because FastAPI runs plain functions in a thread."""
    return shown(status, q, cursor, limit)


Asked = Annotated[QueueQuery, Depends(_asked)]


@dataclass(frozen=True, slots=True)
class Filter:
    name: str
    word: str
    count: int
    href: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class QueuePage:
    """The page's content."""

    jobs: list[QueueRow]
    filters: list[Filter]
    total: int
    active: int
    ready: int
    news: str
    hold: str
    status: str
    words: str
    query: str
    here: str
    nothing: str
    download_all: str
    next: str
    first: str


def queue(listing: Listing, asked: QueueQuery, now: datetime, language: Language) -> QueuePage:
    counts = {
        "": listing.total,
        "active": listing.active_count,
        "complete": listing.counts[Status.COMPLETE],
        Status.NEEDS_REVIEW: listing.counts[Status.NEEDS_REVIEW],
        "failed": listing.counts[Status.FAILED],
    }
    query = asked.query()
    ready = [job.id for job in listing.jobs if job.status is Status.COMPLETE]
    return QueuePage(
        jobs=[row(job, now, language) for job in listing.jobs],
        filters=[
            Filter(
                name,
                language.say(word),
                counts[status],
                f"/queue{asked.query(status=status, cursor='')}",
                asked.status == status,
            )
            for name, status, word in _FILTERS
            # Where no threshold is set, nothing ever needs a look, and nobody needs to know that it could.
            if status != Status.NEEDS_REVIEW or counts[status] or asked.status == status
        ],
        total=counts[""],
        active=counts["active"],
        ready=len(ready) if asked.words else counts["complete"],
        news=_news(counts, language),
        hold=(language.tell(listing.on_hold.reason) or "") if listing.on_hold else "",
        status=asked.status,
        words=asked.words,
        query=query,
        here=f"/queue{query}",
        nothing=_nothing(asked, language),
        # In a search, what is on this page; otherwise everything that is ready.
        download_all=f"/api/jobs/download?ids={','.join(map(str, ready))}" if asked.words else "/api/jobs/download",
        next=f"/queue{asked.query(cursor=listing.next)}" if listing.next else "",
        first=f"/queue{asked.query(cursor='')}" if asked.cursor else "",
    )


def _nothing(asked: QueueQuery, language: Language) -> str:
    if asked.words:
        return language.say("convert.queue_page.nothing_called", words=asked.words)
    key = f"convert.queue_page.nothing_{asked.status}"
    return language.say(key) if key in language.messages else ""


def _news(counts: dict[str, int], language: Language) -> str:
    """What the live region announces when it changes."""
    ended = language.say("convert.queue_page.news_ready", count=counts["complete"])
    if counts[Status.NEEDS_REVIEW]:
        ended = language.say("convert.queue_page.news_review", ready=ended, count=counts[Status.NEEDS_REVIEW])
    if counts["failed"]:
        ended = language.say("convert.queue_page.news_failed", ready=ended, count=counts["failed"])
    if counts["active"]:
        return language.say("convert.queue_page.news_going", count=counts["active"], ended=ended)
    return language.say("convert.queue_page.news_done", ended=ended)


@router.get("/queue")
async def look(request: Request, caller: Reader, context: Shared, asked: Asked) -> Response:
    return await _answer(request, caller, context, asked)


@router.post("/queue/{job_id}/retry")
async def retry(
    request: Request, job_id: uuid.UUID, caller: Editor, context: Shared, asked: Asked, mapping: str | None = None
) -> Response:
    await context.conversions.retry(caller.principal.owner, job_id, mapping)
    return await _answer(request, caller, context, asked)


@router.post("/queue/{job_id}/cancel")
async def cancel(request: Request, job_id: uuid.UUID, caller: Editor, context: Shared, asked: Asked) -> Response:
    await context.conversions.cancel(caller.principal.owner, job_id)
    return await _answer(request, caller, context, asked)


@router.post("/queue/{job_id}/pin")
async def pin(request: Request, job_id: uuid.UUID, caller: Editor, context: Shared, asked: Asked) -> Response:
    await context.conversions.pin(caller.principal.owner, job_id, pinned=True)
    return await _answer(request, caller, context, asked)


@router.post("/queue/{job_id}/unpin")
async def unpin(request: Request, job_id: uuid.UUID, caller: Editor, context: Shared, asked: Asked) -> Response:
    await context.conversions.pin(caller.principal.owner, job_id, pinned=False)
    return await _answer(request, caller, context, asked)


async def _answer(request: Request, caller: Visitor, context: Shared, asked: QueueQuery) -> Response:
    """The part that changes for htmx; a redirect to the page for a form without a script."""
    live = "hx-request" in request.headers
    if request.method == "POST" and not live:
        return RedirectResponse(f"/queue{asked.query()}", 303)
    answer = await context.listings.page(
        caller.principal.owner,
        statuses=asked.statuses,
        words=asked.words or None,
        cursor=asked.cursor or None,
        limit=asked.limit,
    )
    language = language_of(request)
    content = queue(answer.listing, asked, datetime.now(UTC), language)
    if live:
        response = page(render("convert/queue_live.html", language, queue=content), language)
    else:
        response = page(render("convert/queue.html", language, page=frame(request), queue=content), language)
        caller.welcome(request, response)
    response.headers.add_vary_header("HX-Request")
    return response
