"""`/batches`: send a ZIP, and look at all batches. The script sends it to the API; without it, the form posts here."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from waybill.errors import DocumentFault, Refused
from waybill.web.languages import Language, language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import Visitor
from waybill_batches.api.uploads import receive
from waybill_batches.mapping_rules import MOST_RULES
from waybill_batches.pages.batch_cards import BatchCard, batch_card, news
from waybill_batches.pages.parts import add_part_header, wants_part
from waybill_batches.permissions import WRITE, Reader, Writer
from waybill_batches.views import BatchListing
from waybill_batches.web_context import BatchContext, Shared

router = APIRouter(include_in_schema=False)

_MB = 1024 * 1024
_PAGE = 50


@dataclass(frozen=True, slots=True)
class UploadPart:
    """What the form needs to know."""

    bytes: int
    limits: str
    rules: int
    owner: str
    """A mark of whose page this is: an interrupted upload goes on only for the one who began it."""


@dataclass(frozen=True, slots=True)
class ListPage:
    batches: list[BatchCard]
    active: int
    news: str
    next: str
    first: str
    here: str


def list_page(listing: BatchListing, cursor: str, now: datetime, language: Language) -> ListPage:
    return ListPage(
        batches=[batch_card(view, now, language) for view in listing.batches],
        active=listing.active_count,
        news=" ".join(news(view, language) for view in listing.batches[:1]),
        next=f"/batches?cursor={listing.next}" if listing.next else "",
        first="/batches" if cursor else "",
        here=f"/batches?cursor={cursor}" if cursor else "/batches",
    )


@router.get("/batches")
async def look(request: Request, caller: Reader, context: Shared, cursor: str = "") -> Response:
    return await _page(request, caller, context, cursor=cursor)


@router.post("/batches")
async def send(request: Request, caller: Writer, context: Shared) -> Response:
    """Receive the form of a browser without scripts. Shows the batch, or this page with what was refused."""
    try:
        received, _ = await receive(request, context, caller)
    except (DocumentFault, Refused) as error:
        return await _page(request, caller, context, refused=language_of(request).explain(error))
    response = RedirectResponse(f"/batches/{received.batch_id}", 303)
    caller.welcome(request, response)
    return response


@router.post("/batches/{batch_id}/retry")
async def retry(request: Request, batch_id: uuid.UUID, caller: Writer, context: Shared, listed: str = "") -> Response:
    await context.batches.retry(caller.principal.owner, batch_id)
    return _done(request, "/batches" if listed else f"/batches/{batch_id}")


@router.post("/batches/{batch_id}/cancel")
async def cancel(request: Request, batch_id: uuid.UUID, caller: Writer, context: Shared, listed: str = "") -> Response:
    await context.batches.cancel(caller.principal.owner, batch_id)
    return _done(request, "/batches" if listed else f"/batches/{batch_id}")


@router.post("/batches/{batch_id}/delete")
async def delete(request: Request, batch_id: uuid.UUID, caller: Writer, context: Shared) -> Response:
    await context.batches.delete(caller.principal.owner, batch_id)
    return _done(request, "/batches")


def _done(request: Request, back: str) -> Response:
    """Nothing for a script, which asks for the part that changes; a redirect for a form without one."""
    return Response(status_code=204) if wants_part(request) else RedirectResponse(back, 303)


async def _page(
    request: Request, caller: Visitor, context: BatchContext, *, cursor: str = "", refused: str = ""
) -> Response:
    language, owner = language_of(request), caller.principal.owner
    listing = await context.batches.page(owner, cursor=cursor or None, limit=_PAGE)
    content = list_page(listing, cursor, datetime.now(UTC), language)
    if wants_part(request):
        response = page(render("batches/list_live.html", language, list=content), language)
        add_part_header(response)
        return response
    megabytes = context.settings.batch_max_mb
    upload = UploadPart(
        megabytes * _MB,
        language.say("sizes.megabytes", number=megabytes),
        MOST_RULES,
        hashlib.sha256(owner.encode()).hexdigest()[:16],
    )
    text = render(
        "batches/list.html",
        language,
        page=frame(request),
        list=content,
        upload=upload,
        may_send=caller.principal.may(WRITE),
        refused=refused,
    )
    response = page(text, language, 422 if refused else 200)
    add_part_header(response)
    caller.welcome(request, response)
    return response
