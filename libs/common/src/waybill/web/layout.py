"""What every page is made with: the templates, the frame around them, and the policy that a browser holds them to."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from waybill.web.languages import LANGUAGES, Language, for_scripts
from waybill.web.page_headers import PAGE_POLICY
from waybill.web.static_files import STATIC
from waybill.web.visitors import Visitor

THEME_COOKIE = "waybill_theme"
THEMES = ("", "light", "dark")

_templates = Environment(
    loader=ChoiceLoader([PackageLoader("waybill.web"), PackageLoader("waybill_convert.pages")]),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
    auto_reload=False,
)


@dataclass(frozen=True, slots=True)
class Frame:
    """What the header and the footer say."""

    at: str
    """Which page this is, for the navigation."""
    tenant: str | None
    """Whose queue it is, if the browser is signed in; empty where nobody asked who it is (an unknown address)."""
    theme: str
    here: str
    static: str = STATIC
    version: str = version("waybill-api")


def frame(request: Request, at: str) -> Frame:
    caller: Visitor | None = getattr(request.state, "visitor", None)
    if caller is None:
        tenant: str | None = ""
    else:
        tenant = caller.principal.tenant if caller.principal.signed_in else None
    theme = request.cookies.get(THEME_COOKIE, "")
    here = request.url.path if request.method == "GET" else "/"
    if request.method == "GET" and request.url.query:
        here += f"?{request.url.query}"
    return Frame(at, tenant, theme if theme in THEMES else "", here)


def render(template: str, language: Language, **values: Any) -> str:
    """A template in a language: `t` says its messages, `words` gives them to the page's scripts."""
    said = {"t": language.say, "words": functools.partial(for_scripts, language)}
    return _templates.get_template(template).render(language=language, languages=LANGUAGES.values(), **said, **values)


def page(text: str, language: Language, status: int = 200) -> HTMLResponse:
    headers = {
        "Content-Security-Policy": PAGE_POLICY,
        "Content-Language": language.code,
        "Vary": "Accept-Language, Cookie",
    }
    return HTMLResponse(text, status, headers)
