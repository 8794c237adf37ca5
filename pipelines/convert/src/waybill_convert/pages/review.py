"""`/review/{id}`: the document beside what was read from it, for review and correction. It works without scripts."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from waybill.errors import Expired, NotFound, Refused
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.web.languages import Language, language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import Visitor
from waybill_convert.api.revisions import author_of
from waybill_convert.kinds import XML
from waybill_convert.pages.review_content import Draft, Review, ReviewSubject, shown
from waybill_convert.pages.review_history import compared, told
from waybill_convert.permissions import WRITE, Reader, Writer
from waybill_convert.revision_models import Json, Outdated, Typed, Unfit
from waybill_convert.web_context import ConvertContext, Shared

router = APIRouter(include_in_schema=False, prefix="/review/{job_id}")

_MOST_FIELDS = 10_000
_LONGEST_TEXT = 1000


@router.get("")
async def look(
    request: Request, job_id: uuid.UUID, caller: Reader, context: Shared, revision: str = "", edit: str = ""
) -> Response:
    number = int(revision) if revision.isascii() and revision.isdigit() and len(revision) < 9 else None
    found = await _page(caller, context, job_id, number)
    return await _answer(request, caller, context, found, Draft(edit=edit[:200]))


@router.post("")
async def correct(request: Request, job_id: uuid.UUID, caller: Writer, context: Shared) -> Response:
    """Check the form's corrections or save them, and show the page again."""
    base, typed, wanted = await _form(request)
    owner, language = caller.principal.owner, language_of(request)
    if wanted == "check":
        return await _checked(request, caller, context, job_id, base, typed)
    try:
        author = await author_of(context, caller.principal)
        await context.space.check()
        await context.reviews.save(owner, job_id, base, typed, author=author, accept=wanted == "accept")
    except Outdated as outdated:
        note = language.say(
            "convert.review_page.outdated", number=outdated.latest.number, by=told(outdated.latest.author, language)
        )
        return await _checked(request, caller, context, job_id, outdated.latest.number, typed, note=note, status=409)
    except Unfit as unfit:
        note = "" if unfit.findings or unfit.refused else language.explain(unfit)
        return await _checked(request, caller, context, job_id, base, typed, note=note, status=422)
    return RedirectResponse(f"/review/{job_id}", 303)


@router.post("/check")
async def check(request: Request, job_id: uuid.UUID, caller: Writer, context: Shared) -> Response:
    """Preview corrections for the script: the values that would change, and the problems that would remain."""
    base, typed, _ = await _form(request)
    language = language_of(request)
    found = await _page(caller, context, job_id, None)
    draft = await _draft(caller, context, job_id, base, typed, language)
    before = await _shown(context, found, Draft(), language, may_write=True)
    after = await _shown(context, found, draft, language, may_write=True)
    first = {cell.id: cell for cell in before.seen.cells()}
    values = [
        {"id": cell.id, "text": cell.text, "look": cell.look, "says": cell.says}
        for cell in after.seen.cells()
        if first.get(cell.id) != cell
    ]
    return JSONResponse(
        {
            "values": values,
            "problems": render("convert/review_problems.html", language, review=after),
            "doubtful": after.seen.doubtful,
            "news": after.news,
        }
    )


@router.get("/changes/{before}/{after}")
async def compare(
    request: Request, job_id: uuid.UUID, before: int, after: int, caller: Reader, context: Shared
) -> Response:
    """Show the values that differ between two revisions."""
    owner, language = caller.principal.owner, language_of(request)
    view = await context.conversions.get(owner, job_id)
    _, record = await context.reviews.record(owner, job_id, max(after, 0))
    found = await context.reviews.diff(owner, job_id, max(before, 0), max(after, 0))
    rows = await asyncio.to_thread(compared, context.reviser, record, found, language)
    values = {"id": str(job_id), "name": view.original_name, "before": before, "after": after, "rows": rows}
    return page(render("convert/review_changes.html", language, page=frame(request), compared=values), language)


async def _page(caller: Visitor, context: ConvertContext, job_id: uuid.UUID, number: int | None) -> ReviewSubject:
    owner = caller.principal.owner
    latest, revisions = await context.reviews.revisions(owner, job_id)
    view = await context.conversions.get(owner, job_id)
    try:
        shown_number, record = await context.reviews.record(owner, job_id, number)
    except NotFound:
        if number is not None:
            raise
        shown_number, record = latest, None  # nothing could be read, but the page can say why
    return ReviewSubject(view, latest, shown_number, revisions, record, await _was_converted(context, owner, job_id))


async def _was_converted(context: ConvertContext, owner: str, job_id: uuid.UUID) -> bool:
    """Whether revision 0 has XML. A failed conversion has none."""
    try:
        await context.reviews.file(owner, job_id, 0, XML)
    except (NotFound, Expired):
        return False
    return True


async def _checked(
    request: Request,
    caller: Visitor,
    context: ConvertContext,
    job_id: uuid.UUID,
    base: int,
    typed: Sequence[Typed],
    *,
    note: str = "",
    status: int = 200,
) -> Response:
    draft = await _draft(caller, context, job_id, base, typed, language_of(request), note)
    return await _answer(request, caller, context, await _page(caller, context, job_id, None), draft, status)


async def _draft(
    caller: Visitor,
    context: ConvertContext,
    job_id: uuid.UUID,
    base: int,
    typed: Sequence[Typed],
    language: Language,
    note: str = "",
) -> Draft:
    """Preview the corrections. If that is not possible, a note says why, and the corrections stay in the form."""
    owner = caller.principal.owner
    try:
        preview = await context.reviews.preview(owner, job_id, base, typed)
    except Outdated as outdated:
        note = language.say(
            "convert.review_page.outdated", number=outdated.latest.number, by=told(outdated.latest.author, language)
        )
        return Draft(typed=tuple(typed), note=note)
    except Refused as refused:
        return Draft(typed=tuple(typed), note=note or language.explain(refused))
    return Draft(typed=tuple(typed), revised=preview.revised, note=note)


async def _answer(
    request: Request, caller: Visitor, context: ConvertContext, found: ReviewSubject, draft: Draft, status: int = 200
) -> Response:
    language = language_of(request)
    content = await _shown(context, found, draft, language, may_write=caller.principal.may(WRITE))
    text = render("convert/review.html", language, page=frame(request), review=content)
    response = page(text, language, status)
    caller.welcome(request, response)
    return response


async def _shown(
    context: ConvertContext, found: ReviewSubject, draft: Draft, language: Language, *, may_write: bool
) -> Review:
    return await asyncio.to_thread(shown, context.reviser, found, draft, language, may_write=may_write)


async def _form(request: Request) -> tuple[int, list[Typed], str]:
    """The revision that was shown, the corrections, and the button that was pressed."""
    try:
        fields = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise Refused(msg("convert.review.form_unreadable")) from error
    single: Json = dict(fields)
    base = single.get("base", "")
    if not (base.isascii() and base.isdigit() and len(base) < 9):
        raise Refused(msg("convert.review.no_base"))
    typed = [(name[2:], text) for name, text in fields if name.startswith("v.")]
    if not all(is_storable(path) and is_storable(text) and len(text) <= _LONGEST_TEXT for path, text in typed):
        raise Refused(msg("convert.review.bad_characters"))
    return int(base), typed, single.get("do", "save")
