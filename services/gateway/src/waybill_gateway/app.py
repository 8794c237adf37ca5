"""The gateway as an ASGI application: what it is made of, in one place."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from waybill import http
from waybill.config import GatewaySettings
from waybill.errors import Code
from waybill_gateway.admission import Admission
from waybill_gateway.catalogue import Catalogue
from waybill_gateway.pool import Pool
from waybill_gateway.process_route import Processing
from waybill_gateway.render_route import Rendering
from waybill_gateway.spool import Spool


def create_app(
    settings: GatewaySettings, pool: Pool, catalogue: Catalogue, spool: Spool, admission: Admission
) -> Starlette:
    """The application; what it is given stays the caller's to start and to stop."""

    async def mappings(_request: Request) -> Response:
        return JSONResponse({"mappings": catalogue.to_json()})

    async def livez(_request: Request) -> Response:
        """The process runs and answers. Parsers that do not start are no reason to restart it."""
        return JSONResponse({"status": "alive"})

    async def readyz(_request: Request) -> Response:
        """Whether documents should be sent here."""
        if admission.leaving:
            return http.Problem(503, Code.NOT_READY, "This gateway is about to stop.", {"Retry-After": "1"})
        if not pool.ready:
            return http.Problem(503, Code.NOT_READY, "No parsing process is running.", {"Retry-After": "1"})
        return JSONResponse({"status": "ready"})

    app = Starlette(
        routes=[
            Route("/process", Processing(settings, pool, spool, admission, catalogue), methods=["POST"]),
            Route("/render", Rendering(settings, pool, spool, admission), methods=["POST"]),
            Route("/mappings", mappings),
            Route("/livez", livez),
            Route("/readyz", readyz),
        ]
    )
    http.install(app)
    app.add_middleware(http.SafeHeaders)  # last, hence outermost: problem documents get the headers too
    return app
