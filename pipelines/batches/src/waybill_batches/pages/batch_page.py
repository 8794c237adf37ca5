"""`/batches/{id}`: one batch, its files and its summary. The table comes in parts: a batch may have 20,000 files."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from waybill.errors import Expired, IoFailure, NotReady
from waybill.messages import Message
from waybill.web.languages import Language, language_of
from waybill.web.layout import frame, page, render
from waybill_batches.api.files import opened
from waybill_batches.pages.batch_cards import BatchCard, batch_card, news
from waybill_batches.pages.file_rows import file_row
from waybill_batches.pages.files_part import FilesQuery, files_part, files_query
from waybill_batches.pages.parts import add_part_header, wants_part
from waybill_batches.pages.shown_summary import ShownError, shown_errors, shown_summary
from waybill_batches.permissions import Reader
from waybill_batches.status import FileStatus
from waybill_batches.views import BatchView, FileListing
from waybill_batches.web_context import BatchContext, Shared
from waybill_engine.explain import Reason

router = APIRouter(include_in_schema=False)

ROWS = 200
"""Rows that are loaded together, and those on a page without scripts."""
_SHOWN_BYTES = 256 * 1024
"""The largest result that is shown on the page; a larger one is downloaded."""
_SHOWN_CHARACTERS = 30_000
_MOST_ERRORS = 3
_HOLDING = frozenset({Reason.QUEUE_PAUSED, Reason.NO_WORKER, Reason.BREAKER, Reason.CAP, Reason.RATE})
"""What a batch waits for that is neither its turn nor its own work."""


async def _asked(status: str = "", type: str = "", q: str = "", cursor: str = "") -> FilesQuery:  # noqa: A002
    """`files_query` as a dependency. It is a coroutine because FastAPI runs plain functions in a thread."""
    return files_query(status, type, q, cursor)


Asked = Annotated[FilesQuery, Depends(_asked)]


@dataclass(frozen=True, slots=True)
class BatchPage:
    """What the top of a batch's page shows, whichever of its tabs is open."""

    card: BatchCard
    hold: str
    """Why nothing of it is worked, if something keeps it; empty otherwise."""
    rules: tuple[tuple[str, str], ...]
    errors: tuple[ShownError, ...]
    """The most frequent ones."""
    news: str
    tab: str
    """`files` or `summary`."""
    summarized: bool
    active: bool


def batch_page(
    view: BatchView, summary: Mapping[str, Any] | None, tab: str, language: Language, hold: Message | None = None
) -> BatchPage:
    failing = summary is not None and not view.active and view.failed
    return BatchPage(
        card=batch_card(view, datetime.now(UTC), language),
        hold=(language.tell(hold) or "") if hold is not None else "",
        rules=tuple((each["pattern"], each["mapping"]) for each in view.rules),
        errors=shown_errors(summary, language)[:_MOST_ERRORS] if summary is not None and failing else (),
        news=news(view, language),
        tab=tab,
        summarized=summary is not None,
        active=view.active,
    )


@router.get("/batches/{batch_id}")
async def look(request: Request, batch_id: uuid.UUID, caller: Reader, context: Shared, asked: Asked) -> Response:
    """The batch with its files; for the script, only what changes above the table."""
    owner, language = caller.principal.owner, language_of(request)
    view = await context.batches.get(owner, batch_id)
    summary = await context.batches.summary(owner, batch_id)
    part = wants_part(request)
    listing = FileListing([], None) if part else await _files(context, owner, batch_id, asked)
    top = batch_page(view, summary, "files", language, await _hold(context, owner, view))
    files = files_part(view, summary, listing, asked, language)
    if part:
        response = page(render("batches/batch_live.html", language, batch=top, files=files), language)
    else:
        text = render("batches/batch.html", language, page=frame(request), batch=top, files=files)
        response = page(text, language)
        caller.welcome(request, response)
    add_part_header(response)
    return response


@router.get("/batches/{batch_id}/rows")
async def rows(
    request: Request, batch_id: uuid.UUID, caller: Reader, context: Shared, asked: Asked, bare: bool = False
) -> Response:
    """Rows of the table for the script, and where the next ones begin; only that and how many they are if `bare`."""
    language = language_of(request)
    listing = await _files(context, caller.principal.owner, batch_id, asked)
    content: dict[str, Any] = {"count": len(listing.files), "next": listing.next, "rows": None}
    if not bare:
        made = [file_row(batch_id, file, language) for file in listing.files]
        text = render("batches/rows.html", language, rows=made)
        content["rows"] = [f"{row.strip()}</tr>" for row in text.split("</tr>")[:-1]]
    headers = {"Content-Language": language.code, "Vary": "Accept-Language, Cookie"}
    return Response(pydantic_core.to_json(content), headers=headers, media_type="application/json")


@router.get("/batches/{batch_id}/summary")
async def summarize(request: Request, batch_id: uuid.UUID, caller: Reader, context: Shared) -> Response:
    owner, language = caller.principal.owner, language_of(request)
    view = await context.batches.get(owner, batch_id)
    summary = await context.batches.summary(owner, batch_id)
    shown = shown_summary(batch_id, summary, language) if summary is not None else None
    top = batch_page(view, summary, "summary", language, await _hold(context, owner, view))
    values: dict[str, Any] = {"batch": top, "summary": shown}
    if wants_part(request):
        response = page(render("batches/summary_live.html", language, **values), language)
    else:
        response = page(render("batches/summary.html", language, page=frame(request), **values), language)
        caller.welcome(request, response)
    add_part_header(response)
    return response


@router.get("/batches/{batch_id}/files/{doc_id}")
async def look_at_file(request: Request, batch_id: uuid.UUID, doc_id: str, caller: Reader, context: Shared) -> Response:
    """What is known of one file, and what was read in it. The script shows the part in a dialog."""
    owner, language = caller.principal.owner, language_of(request)
    view = await context.batches.get(owner, batch_id)
    file = await context.batches.file(owner, batch_id, doc_id.replace("\0", ""))
    shown = await _result(context, owner, batch_id, file.doc_id) if (file.result_bytes or 0) <= _SHOWN_BYTES else None
    values: dict[str, Any] = {
        "file": file_row(batch_id, file, language),
        "batch": {"name": view.name, "href": f"/batches/{batch_id}"},
        "sha256": file.sha256,
        "result": (shown or "")[:_SHOWN_CHARACTERS],
        "cut": shown is not None and len(shown) > _SHOWN_CHARACTERS,
        "too_large": file.status is FileStatus.COMPLETE and (file.result_bytes or 0) > _SHOWN_BYTES,
    }
    if wants_part(request):
        response = page(render("batches/file_live.html", language, **values), language)
    else:
        response = page(render("batches/file.html", language, page=frame(request), **values), language)
    add_part_header(response)
    return response


async def _hold(context: BatchContext, owner: str, view: BatchView) -> Message | None:
    if not view.active or view.counts.get(FileStatus.PROCESSING):
        return None
    found = await context.batches.explain(owner, view.id)
    return found.says if found.reason in _HOLDING else None


async def _files(context: BatchContext, owner: str, batch_id: uuid.UUID, asked: FilesQuery) -> FileListing:
    return await context.batches.files(
        owner,
        batch_id,
        statuses=asked.statuses,
        kind=asked.type or None,
        words=asked.words or None,
        cursor=asked.cursor or None,
        limit=ROWS,
    )


async def _result(context: BatchContext, owner: str, batch_id: uuid.UUID, doc_id: str) -> str | None:
    """What was read in a file, indented; None if there is nothing, or nothing any more."""
    try:
        found = await context.downloads.result(owner, batch_id, doc_id)
        text = b"".join([chunk async for chunk in await opened(context.storage, found)])
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (Expired, NotReady, IoFailure, ValueError):
        return None
