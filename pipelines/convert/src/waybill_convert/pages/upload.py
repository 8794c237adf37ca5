"""`/`: choosing documents and sending them. With a script they go to `/api/uploads`; without one, here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, RedirectResponse, Response

from waybill.web.context import Context
from waybill.web.languages import language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import AnyVisitor, Shared, Visitor, Writer
from waybill_convert.api.uploads import admit, check_space, create, receiver_of
from waybill_convert.kinds import DEFAULT_MAPPING
from waybill_convert.upload_form import Form
from waybill_documents import catalogue

router = APIRouter(include_in_schema=False)

_MB = 1024 * 1024
_SAMPLE = Path(__file__).parent / "sample" / "sample-invoice.pdf"
"""One of ours, printed by the generator of the tests (`tests/pages/test_pages.py` keeps it so)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be sent, for the script and in words."""

    bytes: int
    files: int
    request: int
    words: str


@dataclass(frozen=True, slots=True)
class Mapping:
    name: str
    title: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    name: str
    why: str


@router.api_route("/", methods=["GET", "HEAD"])
async def choose(request: Request, caller: AnyVisitor, context: Shared) -> Response:
    return _page(request, caller, context)


@router.post("/")
async def send(request: Request, caller: Writer, context: Shared) -> Response:
    """The form of a browser without a script: to the queue, or back here with what was wrong."""
    await admit(request, context, caller)
    await check_space(request, context)
    language, refused = language_of(request), list[Refusal]()
    async with receiver_of(context, files=context.settings.api_max_files) as receiving:
        form = await receiving.receive(request, one=False)
        for each in form.files:
            if each.failure is None:
                await create(context, caller, receiving, each, form)
            else:
                refused.append(Refusal(each.name, language.explain(each.failure.code, each.failure.message)))
    if refused:
        return _page(request, caller, context, refused, sent=len(form.files) - len(refused), mapping=form.mapping)
    return _to_queue(request, caller)


@router.post("/sample")
async def try_sample(request: Request, caller: Writer, context: Shared) -> Response:
    """Convert our own invoice, for who has none at hand."""
    await admit(request, context, caller)
    await check_space(request, context)
    async with receiver_of(context, files=1) as receiver:
        received = await receiver.store(_SAMPLE.name, _SAMPLE.read_bytes())
        await create(context, caller, receiver, received, Form())
    return _to_queue(request, caller)


@router.get("/sample.pdf")
async def sample() -> Response:
    return FileResponse(_SAMPLE, media_type="application/pdf", content_disposition_type="inline")


def _to_queue(request: Request, caller: Visitor) -> Response:
    response = RedirectResponse("/queue", 303)
    caller.welcome(request, response)
    return response


def _page(
    request: Request,
    caller: Visitor,
    context: Context,
    refused: list[Refusal] | None = None,
    *,
    sent: int = 0,
    mapping: str = DEFAULT_MAPPING,
) -> Response:
    settings, language = context.settings, language_of(request)
    limits = Limits(
        settings.max_upload_mb * _MB,
        settings.api_max_files,
        settings.api_max_request_mb * _MB,
        language.say("sizes.megabytes", number=settings.max_upload_mb),
    )
    mappings = [
        Mapping(name, language.translate(title) or title, name == mapping) for name, title in _ordered(context.mappings)
    ]
    text = render(
        "upload.html",
        language,
        page=frame(request, "upload"),
        limits=limits,
        mappings=mappings,
        refused=refused or [],
        sent=sent,
    )
    response = page(text, language, 422 if refused else 200)
    caller.welcome(request, response)
    return response


def _ordered(names: list[str]) -> list[tuple[str, str]]:
    """Names and titles. What most people want stands first."""
    titles = [(name, _title(name)) for name in names]
    return sorted(titles, key=lambda each: (each[0] != DEFAULT_MAPPING, each[1].lower()))


def _title(name: str) -> str:
    """What a mapping calls itself."""
    found = catalogue.summary(name)
    return found.title if found is not None else name
