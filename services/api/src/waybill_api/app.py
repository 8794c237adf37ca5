"""The API as an ASGI application: the platform's routes, and those of each installed pipeline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from waybill import background_tasks
from waybill.config import ApiSettings, ProcessSettings
from waybill.db import Database
from waybill.http import AccessLog, SafeHeaders
from waybill.http.request_metrics import RequestMetrics
from waybill.pipelines import brought
from waybill.storage import Storage
from waybill.web import ApiPart, Context, openapi, static_files
from waybill.web.compression import Compression
from waybill.web.guards import Bodies, SameSite, TrustedHosts
from waybill.web.methods import Methods
from waybill.web.page_headers import PageHeaders
from waybill.web.request_traces import trace_requests
from waybill.web.request_trail import RequestTrail
from waybill_api import account, audit_events, health, ops, problem_pages, problems, sessions
from waybill_engine.registry import register_kinds
from waybill_engine.sampler import Sampler

_QUIET = frozenset({"/livez", "/readyz", "/api/healthz", "/static/{version}/{name:path}"})
"""Routes whose requests say nothing about anybody's work."""


def create_app(
    settings: ApiSettings, database: Database, storage: Storage, *, pipeline_settings: Sequence[ProcessSettings] = ()
) -> FastAPI:
    """The application. The caller closes the database and the storage.

    Pipelines read their settings from the environment, unless they are given.
    """
    parts: list[ApiPart] = brought("api")
    for kinds in brought("kinds"):
        register_kinds(kinds)  # routes and listeners may enqueue another pipeline's jobs by the name of their kind
    context = Context(settings, database, storage, parts, pipeline_settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        sampler = Sampler(database, settings.sample_interval)
        async with context.running(), background_tasks.running(sampler.run(), "sampler"):
            yield

    app = FastAPI(
        title="Waybill",
        version=version("waybill-api"),
        description=openapi.DESCRIPTION,
        openapi_url=None,  # `openapi.router` has it
        # FastAPI's documentation pages load scripts from other sites, which our content policy forbids.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        # Its own spans and logs would show the messages of exceptions; `trace_requests` makes ours.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.context = context
    openapi.install(app)
    routers = (
        health.router,
        openapi.router,
        sessions.router,
        audit_events.router,
        *(router for part in parts for router in part.routers),
        account.router,
        ops.router,
        static_files.router,
    )
    app.add_middleware(Methods, routes=[*app.routes, *(route for router in routers for route in router.routes)])
    _guard(app, context, parts)
    # As `include_router` would, but that makes every route anew for this application, at its first request.
    app.router.routes.extend(route for router in routers for route in router.routes)
    trace_requests(app)
    return app


def _guard(app: FastAPI, context: Context, parts: Sequence[ApiPart]) -> None:
    """Add the middleware from the inside out: what is added last sees a request first."""
    settings = context.settings
    app.add_middleware(
        Bodies,
        uploads=frozenset[str]().union(*(part.large_bodies for part in parts)),
        limits={path: limit for part in parts for path, limit in part.body_limits.items()},
        patience=settings.api_body_timeout,
    )
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
    app.add_middleware(RequestTrail, refusals=context.refusals)
    if settings.api_trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=settings.api_trusted_proxies)
    app.add_middleware(Compression)
    app.add_middleware(PageHeaders, https=settings.api_https)
    app.add_middleware(SafeHeaders)
    app.add_middleware(RequestMetrics, service="api")
    app.add_middleware(AccessLog, written=settings.access_log, quiet=_QUIET)
