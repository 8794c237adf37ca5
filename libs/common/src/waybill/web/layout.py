"""Rendering pages: the templates of the platform and the pipelines, and the frame around each page."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from waybill.pipelines import installed
from waybill.security import ADMIN, Principal
from waybill.web.languages import LANGUAGES, Language, for_scripts
from waybill.web.page_headers import PAGE_POLICY
from waybill.web.static_files import STATIC
from waybill.web.visitors import Visitor

THEME_COOKIE = "waybill_theme"
THEMES = ("", "light", "dark")


class NavigationLink(NamedTuple):
    """One link of the navigation."""

    path: str
    message: str


@cache
def _navigation() -> tuple[NavigationLink, ...]:
    """The pipeline that people land on comes first."""
    pipelines = sorted(installed(), key=lambda pipeline: pipeline.landing is None)
    return tuple(NavigationLink(*entry) for pipeline in pipelines for entry in pipeline.navigation)


OPERATIONS = NavigationLink("/ops", "frame.ops")
"""The page of admins. They see all tenants, so what a pipeline shows of their own is of little use to them."""


def landing_of(principal: Principal) -> str:
    """The page that a browser sees after signing in."""
    return OPERATIONS.path if principal.may(ADMIN) else landing()


def landing() -> str:
    """The page of everybody else."""
    return next((pipeline.landing for pipeline in installed() if pipeline.landing is not None), "/sign-in")


@dataclass(frozen=True, slots=True)
class Frame:
    """What the header and the footer of a page show."""

    path: str
    """The page's path, which the navigation marks as current."""
    tenant: str | None
    """The tenant, if the browser is signed in. Empty where we did not look who it is, as at an unknown address."""
    theme: str
    here: str
    static: str = STATIC
    version: str = version("waybill-common")
    navigation: tuple[NavigationLink, ...] = field(default_factory=_navigation)
    landing: str = field(default_factory=landing)


def frame(request: Request) -> Frame:
    caller: Visitor | None = getattr(request.state, "visitor", None)
    if caller is None:
        tenant: str | None = ""
    else:
        tenant = caller.principal.tenant if caller.principal.signed_in else None
    theme = request.cookies.get(THEME_COOKIE, "")
    here = request.url.path if request.method == "GET" else "/"
    if request.method == "GET" and request.url.query:
        here += f"?{request.url.query}"
    operations = (OPERATIONS,) if caller is not None and caller.principal.may(ADMIN) else ()
    navigation = (*_navigation(), *operations)
    return Frame(request.url.path, tenant, theme if theme in THEMES else "", here, navigation=navigation)


def render(template: str, language: Language, **values: Any) -> str:
    """Render a template: `t` says messages in it, and `words` passes messages to the page's scripts.

    A pipeline's templates are below its name: `convert/queue.html`.
    """
    said = {"t": language.say, "words": functools.partial(for_scripts, language)}
    return _templates().get_template(template).render(language=language, languages=LANGUAGES.values(), **said, **values)


def prepare_templates(beginning: str) -> None:
    """Compile the templates whose names begin like this, before the first page needs them."""
    environment = _templates()
    for name in environment.list_templates(filter_func=lambda name: name.startswith(beginning)):
        environment.get_template(name)


def page(text: str, language: Language, status: int = 200) -> HTMLResponse:
    headers = {
        "Content-Security-Policy": PAGE_POLICY,
        "Content-Language": language.code,
        "Vary": "Accept-Language, Cookie",
    }
    return HTMLResponse(text, status, headers)


@cache
def _templates() -> Environment:
    pipelines: dict[str, BaseLoader] = {
        pipeline.name: PackageLoader(pipeline.pages)
        for pipeline in installed()
        if pipeline.pages is not None and files(pipeline.pages).joinpath("templates").is_dir()
    }
    return Environment(
        loader=ChoiceLoader([PackageLoader("waybill.web"), PrefixLoader(pipelines)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
