"""The form to sign in with, which goes to `/session`, and which colours a browser likes."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from waybill_api.identity import AnyVisitor, is_secure
from waybill_api.pages.frame import THEME_COOKIE, THEMES, frame, page, render

router = APIRouter(include_in_schema=False)

_YEAR = 365 * 86400


@router.get("/sign-in")
async def ask(request: Request, _caller: AnyVisitor) -> Response:
    return page(render("sign_in.html", page=frame(request, "sign-in"), why=""))


@router.post("/theme")
async def theme(
    request: Request,
    theme: Annotated[str, Form(max_length=10)] = "",
    back: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    response = RedirectResponse(_own(back), 303)
    if theme in THEMES and theme:
        response.set_cookie(
            THEME_COOKIE, theme, max_age=_YEAR, httponly=True, samesite="lax", secure=is_secure(request)
        )
    else:
        response.delete_cookie(THEME_COOKIE)
    return response


def _own(path: str) -> str:
    """A path on this site to go back to; the start page if it is anything else."""
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    parts = urlsplit(path) if plain and len(path) <= 2000 else None
    return path if parts is not None and not parts.scheme and not parts.netloc else "/"
