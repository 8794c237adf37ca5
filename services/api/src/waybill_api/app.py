"""The API as an ASGI application: what it is made of, in one place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from waybill.config import ApiSettings
from waybill.db import Database
from waybill.http import SafeHeaders
from waybill.storage import Storage
from waybill.web import openapi, static_files
from waybill.web.context import Context
from waybill.web.guards import Bodies, SameSite, TrustedHosts
from waybill.web.page_headers import PageHeaders
from waybill_api import account, health, problem_pages, problems, sessions
from waybill_convert.api import downloads, jobs, revisions, stream, uploads
from waybill_convert.pages import queue, review, upload
from waybill_documents import catalogue

UPLOADS = frozenset({"/api/upload", "/api/uploads", "/"})
"""Where documents come in: the only bodies that may be large."""


def create_app(settings: ApiSettings, database: Database, storage: Storage) -> FastAPI:
    """The application on a connected database and a storage, which stay the caller's to close."""
    context = Context(settings, database, storage, list(catalogue.names()))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with context.running():
            yield

    app = FastAPI(
        title="Waybill",
        version=version("waybill-api"),
        description=openapi.DESCRIPTION,
        openapi_url="/api/openapi.json",
        # A page that shows it would need scripts from elsewhere; the document itself is what tools want.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.context = context
    openapi.install(app)
    _guard(app, settings)
    # The archive before the jobs: in `/api/jobs/download`, "download" is no id.
    for each in (health, uploads, downloads, jobs, revisions, stream, sessions):
        app.include_router(each.router)
    for page in (upload, queue, review, account, static_files):
        app.include_router(page.router)
    return app


def _guard(app: FastAPI, settings: ApiSettings) -> None:
    """From the inside to the outside: what is added last sees a request first."""
    app.add_middleware(Bodies, uploads=UPLOADS, patience=settings.api_body_timeout)
    app.add_middleware(SameSite)
    if settings.api_cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.api_cors_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "If-None-Match", "Last-Event-ID"],
            expose_headers=["ETag", "Location", "Retry-After", "Content-Disposition"],
        )
    if settings.api_hosts:
        app.add_middleware(TrustedHosts, hosts=settings.api_hosts)
    problems.install(app)
    app.add_middleware(problem_pages.ProblemPages)
    if settings.api_trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=settings.api_trusted_proxies)
    app.add_middleware(PageHeaders, https=settings.api_https)
    app.add_middleware(SafeHeaders)
