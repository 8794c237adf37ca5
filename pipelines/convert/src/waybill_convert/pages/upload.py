"""`/`: choose documents and send them. The script sends them to `/api/uploads`; without it, the form posts here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, RedirectResponse, Response

from waybill.web.languages import ENGLISH, Language, language_of
from waybill.web.layout import frame, page, render
from waybill.web.visitors import AnyVisitor, Visitor
from waybill_convert.api.uploads import admit, check_space, choices_of, create, receiver_of
from waybill_convert.kinds import DEFAULT_MAPPING
from waybill_convert.mapping_catalogue import MappingChoice, MappingOrigin
from waybill_convert.permissions import Writer
from waybill_convert.upload_form import UploadForm
from waybill_convert.web_context import ConvertContext, Shared
from waybill_documents.catalogue import AUTO

router = APIRouter(include_in_schema=False)

_MB = 1024 * 1024
_SAMPLE = Path(__file__).parent / "sample" / "sample-invoice.pdf"
"""An invoice from the tests' generator (`tests/convert/pages/test_upload.py` keeps it so)."""


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """What may be sent: numbers for the script, and words for people."""

    bytes: int
    files: int
    request: int
    words: str


@dataclass(frozen=True, slots=True)
class ShownChoice:
    name: str
    title: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class RefusedFile:
    name: str
    why: str


@router.api_route("/", methods=["GET", "HEAD"])
async def choose(request: Request, caller: AnyVisitor, context: Shared) -> Response:
    return await _page(request, caller, context)


@router.post("/")
async def send(request: Request, caller: Writer, context: Shared) -> Response:
    """Receive the form of a browser without scripts. Shows the queue, or this page with what was refused."""
    begun_at = await admit(request, context, caller)
    await check_space(request, context)
    language, refused = language_of(request), list[RefusedFile]()
    async with await receiver_of(context, caller, files=context.settings.api_max_files) as receiver:
        form = await receiver.receive(request, one=False)
        for each in form.files:
            if each.failure is None:
                await create(context, caller, receiver, each, form, begun_at)
            else:
                refused.append(RefusedFile(each.name, language.explain(each.failure)))
    if refused:
        sent = len(form.files) - len(refused)
        return await _page(request, caller, context, refused, sent=sent, mapping=form.mapping.name)
    return _to_queue(request, caller)


@router.post("/sample")
async def try_sample(request: Request, caller: Writer, context: Shared) -> Response:
    """Convert our sample invoice, for people who have none at hand."""
    begun_at = await admit(request, context, caller)
    await check_space(request, context)
    async with await receiver_of(context, caller, files=1) as receiver:
        received = await receiver.store(_SAMPLE.name, _SAMPLE.read_bytes())
        await create(
            context, caller, receiver, received, UploadForm(context.catalogue.installed[DEFAULT_MAPPING]), begun_at
        )
    return _to_queue(request, caller)


@router.get("/sample.pdf")
async def sample() -> Response:
    return FileResponse(_SAMPLE, media_type="application/pdf", content_disposition_type="inline")


def _to_queue(request: Request, caller: Visitor) -> Response:
    response = RedirectResponse("/queue", 303)
    caller.welcome(request, response)
    return response


async def _page(
    request: Request,
    caller: Visitor,
    context: ConvertContext,
    refused: list[RefusedFile] | None = None,
    *,
    sent: int = 0,
    mapping: str = AUTO,
) -> Response:
    settings, language = context.settings, language_of(request)
    limits = UploadLimits(
        settings.max_upload_mb * _MB,
        settings.api_max_files,
        settings.api_max_request_mb * _MB,
        language.say("sizes.megabytes", number=settings.max_upload_mb),
    )
    choices = _ordered((await choices_of(context, caller)).values())
    mappings = [
        ShownChoice(AUTO, language.say("convert.upload_page.auto"), mapping == AUTO),
        *(ShownChoice(each.name, _title(each, language), each.name == mapping) for each in choices),
    ]
    text = render(
        "convert/upload.html",
        language,
        page=frame(request),
        limits=limits,
        mappings=mappings,
        refused=refused or [],
        sent=sent,
    )
    response = page(text, language, 422 if refused else 200)
    caller.welcome(request, response)
    return response


def _ordered(choices: Iterable[MappingChoice]) -> list[MappingChoice]:
    """What most people want comes first, then the others by their English titles."""
    return sorted(choices, key=lambda each: (each.name != DEFAULT_MAPPING, _title(each, ENGLISH).lower()))


def _title(choice: MappingChoice, language: Language) -> str:
    """What a shipped mapping is called in the reader's language; any other is called what it calls itself."""
    key = f"convert.titles.{choice.name}"
    return language.say(key) if choice.origin is MappingOrigin.SHIPPED and key in language.messages else choice.title
