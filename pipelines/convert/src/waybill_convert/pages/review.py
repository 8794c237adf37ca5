"""`/review/{id}`: the document beside what was read from it, for review and correction. It works without scripts."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from waybill.errors import Expired, NotFound, NotReady, Refused
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.web.departures import while_connected
from waybill.web.languages import Language, language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import Visitor, heavy
from waybill_convert.api.revisions import author_of
from waybill_convert.download_service import StoredFile
from waybill_convert.kinds import XML
from waybill_convert.pages import review_html
from waybill_convert.pages.review_content import Draft, ReviewSubject
from waybill_convert.pages.review_history import told
from waybill_convert.permissions import WRITE, Editor, Reader
from waybill_convert.revision_models import Json, Outdated, Typed, Unfit
from waybill_convert.web_context import ConvertContext, Shared

router = APIRouter(include_in_schema=False, prefix="/review/{job_id}", dependencies=[Depends(heavy)])

_MOST_FIELDS = 10_000
_MOST_WINDOWS = 100
_LONGEST_TEXT = 1000


class _Form(NamedTuple):
    base: int
    """The revision that was shown."""
    typed: list[Typed]
    button: str
    """The button that was pressed. It may name a place: `show lines[50]`."""
    place: str
    at: tuple[str, ...]
    """Paths on the lines that were shown."""


class _Found(NamedTuple):
    subject: ReviewSubject
    record: StoredFile | None
    """None if nothing could be read."""


@router.get("")
async def look(
    request: Request,
    job_id: uuid.UUID,
    caller: Reader,
    context: Shared,
    revision: str = "",
    edit: str = "",
    at: str = "",
) -> Response:
    found = await _find(caller, context, job_id, _number(revision))
    draft = Draft(edit=edit[:200], at=(at[:200],) if at else ())
    return await _answer(request, caller, context, found, draft)


@router.get("/lines")
async def lines(
    request: Request,
    job_id: uuid.UUID,
    caller: Reader,
    context: Shared,
    at: Annotated[str, Query(max_length=200)],
    revision: str = "",
) -> Response:
    """One window of lines, for the script."""
    found = await _find(caller, context, job_id, _number(revision))
    if found.record is None:
        raise NotFound()
    made = await _work(
        request,
        caller,
        context,
        found,
        review_html.lines,
        found.subject,
        at,
        language_of(request).code,
        caller.principal.may(WRITE),
    )
    return JSONResponse(made)


@router.post("")
async def correct(request: Request, job_id: uuid.UUID, caller: Editor, context: Shared) -> Response:
    """Check the form's corrections, save them or approve what was read, and show the page again."""
    form = await _form(request)
    owner, language = caller.principal.owner, language_of(request)
    if form.button in ("check", "show", "edit"):
        return await _checked(request, caller, context, job_id, form)
    try:
        author = await author_of(context, caller.principal)
        # Whoever corrected something and then says that it looks right means the corrected values.
        if form.button == "approve" and not form.typed:
            await context.reviews.approve(owner, job_id, form.base, author=author)
            return RedirectResponse(f"/review/{job_id}", 303)
        await context.space.check()
        accept = form.button == "accept"
        # Not only while the browser waits: whoever saves and closes the page has saved.
        await context.reviews.save(owner, job_id, form.base, form.typed, author=author, accept=accept)
    except Outdated as outdated:
        latest = form._replace(base=outdated.latest.number)
        return await _checked(request, caller, context, job_id, latest, note=_outdated(outdated, language), status=409)
    except Unfit as unfit:
        note = "" if unfit.findings or unfit.refused else language.explain(unfit)
        return await _checked(request, caller, context, job_id, form, note=note, status=422)
    return RedirectResponse(f"/review/{job_id}", 303)


@router.post("/check")
async def check(request: Request, job_id: uuid.UUID, caller: Editor, context: Shared) -> Response:
    """Preview corrections for the script: the values that would change, and the problems that would remain."""
    form = await _form(request)
    language = language_of(request)
    found, (draft, revise) = await asyncio.gather(
        _find(caller, context, job_id, None), _draft(caller, context, job_id, form, language)
    )
    made = await _work(request, caller, context, found, review_html.check, found.subject, draft, language.code, revise)
    return JSONResponse(made)


@router.get("/changes/{before}/{after}")
async def compare(
    request: Request, job_id: uuid.UUID, before: int, after: int, caller: Reader, context: Shared
) -> Response:
    """Show the values that differ between two revisions."""
    owner, language = caller.principal.owner, language_of(request)
    view = await context.conversions.get(owner, job_id)
    files = [await context.reviews.file(owner, job_id, max(number, 0)) for number in (before, after)]
    mapping = await context.reviews.mapping(owner, job_id)
    rows = await while_connected(request, context.desk.work(owner, files, review_html.changes, mapping, language.code))
    values = {"id": str(job_id), "name": view.original_name, "before": before, "after": after, "rows": rows}
    return page(render("convert/review_changes.html", language, page=frame(request), compared=values), language)


async def _find(caller: Visitor, context: ConvertContext, job_id: uuid.UUID, number: int | None) -> _Found:
    owner = caller.principal.owner
    latest, revisions = await context.reviews.revisions(owner, job_id)
    view = await context.conversions.get(owner, job_id)
    shown = latest if number is None else number
    try:
        record = await context.reviews.file(owner, job_id, shown)
    except NotFound:
        if number is not None:
            raise
        record = None  # nothing could be read, but the page can say why
    first_xml = await _was_converted(context, owner, job_id)
    return _Found(ReviewSubject(view, latest, shown, revisions, first_xml), record)


async def _was_converted(context: ConvertContext, owner: str, job_id: uuid.UUID) -> bool:
    """Whether revision 0 has XML that can be had. A failed conversion has none, and some wait for a person."""
    try:
        await context.reviews.file(owner, job_id, 0, XML)
    except (NotFound, Expired, NotReady):
        return False
    return True


async def _checked(
    request: Request,
    caller: Visitor,
    context: ConvertContext,
    job_id: uuid.UUID,
    form: _Form,
    *,
    note: str = "",
    status: int = 200,
) -> Response:
    draft, revise = await _draft(caller, context, job_id, form, language_of(request), note)
    found = await _find(caller, context, job_id, None)
    return await _answer(request, caller, context, found, draft, status, revise=revise)


async def _draft(
    caller: Visitor, context: ConvertContext, job_id: uuid.UUID, form: _Form, language: Language, note: str = ""
) -> tuple[Draft, bool]:
    """The corrections, and whether they fit the latest revision. If not, a note says why, and they stay in the form."""
    at = (form.place,) if form.button == "show" else form.at
    draft = Draft(typed=tuple(form.typed), note=note, edit=form.place if form.button == "edit" else "", at=at)
    try:
        await context.reviews.check_base(caller.principal.owner, job_id, form.base, form.typed)
    except Outdated as outdated:
        return Draft(draft.typed, note=_outdated(outdated, language), edit=draft.edit, at=at), False
    except Refused as refused:
        return Draft(draft.typed, note=note or language.explain(refused), edit=draft.edit, at=at), False
    return draft, True


def _outdated(outdated: Outdated, language: Language) -> str:
    by = told(outdated.latest.author, language)
    return language.say("convert.review_page.outdated", number=outdated.latest.number, by=by)


async def _answer(
    request: Request,
    caller: Visitor,
    context: ConvertContext,
    found: _Found,
    draft: Draft,
    status: int = 200,
    *,
    revise: bool = False,
) -> Response:
    language = language_of(request)
    making = (found.subject, draft, frame(request), language.code, caller.principal.may(WRITE), revise)
    try:
        text = await _work(request, caller, context, found, review_html.whole_page, *making)
    except NotFound:
        if found.subject.number != found.subject.latest:
            raise
        # The file is no record of ours, but the page can say so.
        text = await _work(request, caller, context, found._replace(record=None), review_html.whole_page, *making)
    response = page(text, language, status)
    caller.welcome(request, response)
    return response


async def _work(
    request: Request,
    caller: Visitor,
    context: ConvertContext,
    found: _Found,
    function: Callable[..., Any],
    *arguments: object,
) -> Any:
    """Have a side process do it, when it is this owner's turn, as long as the client waits for it."""
    owner = caller.principal.owner
    mapping = await context.reviews.mapping(owner, found.subject.view.id)
    work: Coroutine[Any, Any, Any] = context.desk.work(owner, [found.record], function, mapping, *arguments)
    return await while_connected(request, work)


def _number(revision: str) -> int | None:
    return int(revision) if revision.isascii() and revision.isdigit() and len(revision) < 9 else None


async def _form(request: Request) -> _Form:
    try:
        fields = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise Refused(msg("convert.review.form_unreadable")) from error
    single: Json = dict(fields)
    base = _number(single.get("base", ""))
    if base is None:
        raise Refused(msg("convert.review.no_base"))
    typed = [(name[2:], text) for name, text in fields if name.startswith("v.")]
    if not _fit(typed):
        raise Refused(msg("convert.review.bad_characters"))
    at = tuple(text[:200] for name, text in fields if name == "at" and text)[:_MOST_WINDOWS]
    button, _, place = single.get("do", "save").partition(" ")
    return _Form(base, typed, button, place[:200], at)


def _fit(typed: Sequence[Typed]) -> bool:
    return all(is_storable(path) and is_storable(text) and len(text) <= _LONGEST_TEXT for path, text in typed)
