"""The API as an ASGI application: what it is made of, in one place."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI

from waybill.db import Database
from waybill.http import SafeHeaders
from waybill_api import health, landing, problems


def create_app(database: Database) -> FastAPI:
    """The application on a connected database, which stays the caller's to close."""
    app = FastAPI(
        title="Waybill",
        version=version("waybill-api"),
        # There is nothing to describe yet: these routes are for probes and for a person who looks in.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.database = database
    problems.install(app)
    app.add_middleware(SafeHeaders)  # last, hence outermost: problem documents get the headers too
    app.include_router(health.router)
    app.include_router(landing.router)
    return app
