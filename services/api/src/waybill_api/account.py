"""The sign-in page, whose form goes to `/session`, and the choice of language and colours."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from waybill.web.languages import LANGUAGE_COOKIE, LANGUAGES, language_of
from waybill.web.layout import THEME_COOKIE, THEMES, frame, page, render
from waybill.web.visitors import AnyVisitor, is_secure

router = APIRouter(include_in_schema=False)

_YEAR = 365 * 86400


@router.get("/sign-in")
async def ask(request: Request, _caller: AnyVisitor) -> Response:
    language = language_of(request)
    return page(render("sign_in.html", language, page=frame(request), why=""), language)


@router.post("/theme")
async def theme(
    request: Request,
    theme: Annotated[str, Form(max_length=10)] = "",
    back: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    return _remember(request, THEME_COOKIE, theme if theme in THEMES else "", back)


@router.post("/language")
async def language(
    request: Request,
    language: Annotated[str, Form(max_length=10)] = "",
    back: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    return _remember(request, LANGUAGE_COOKIE, language if language in LANGUAGES else "", back)


def _remember(request: Request, cookie: str, choice: str, back: str) -> Response:
    """Remember a choice in a cookie, or delete the cookie for an empty choice, and go back to the page."""
    response = RedirectResponse(_own(back), 303)
    if choice:
        response.set_cookie(cookie, choice, max_age=_YEAR, httponly=True, samesite="lax", secure=is_secure(request))
    else:
        response.delete_cookie(cookie)
    return response


def _own(path: str) -> str:
    """A path on this site to go back to; the start page for anything else."""
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    parts = urlsplit(path) if plain and len(path) <= 2000 else None
    return path if parts is not None and not parts.scheme and not parts.netloc else "/"
