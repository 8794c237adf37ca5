"""The gateway as an ASGI application: all its routes."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from waybill import http
from waybill.errors import Code
from waybill.http.proofs import Doorman
from waybill.http.request_metrics import RequestMetrics
from waybill.messages import msg
from waybill_gateway.attachment_route import AttachmentEndpoint
from waybill_gateway.callers import PROBES, Callers
from waybill_gateway.document_metrics import MeasuredRoute
from waybill_gateway.doorkeeper import Doorkeeper
from waybill_gateway.extract_route import ExtractEndpoint
from waybill_gateway.mappings import Mappings
from waybill_gateway.pool import Pool
from waybill_gateway.process_route import ProcessEndpoint
from waybill_gateway.render_route import RenderEndpoint
from waybill_gateway.settings import GatewaySettings
from waybill_gateway.spool import Spool
from waybill_gateway.unpack_route import UnpackEndpoint


def create_app(
    settings: GatewaySettings, pool: Pool, known: Mappings, spool: Spool, doorkeeper: Doorkeeper
) -> Starlette:
    """The application. The caller starts and stops what it passes in."""

    async def mappings(_request: Request) -> Response:
        return JSONResponse({"mappings": known.to_json()})

    async def livez(_request: Request) -> Response:
        """The process runs and answers. Restarting it would not help parsers that cannot start."""
        return JSONResponse({"status": "alive"})

    async def readyz(_request: Request) -> Response:
        """Whether documents can be sent here."""
        if doorkeeper.leaving:
            return http.Problem(503, Code.NOT_READY, msg("gateway.leaving"), {"Retry-After": "1"})
        if not pool.ready:
            return http.Problem(503, Code.NOT_READY, msg("gateway.no_parser"), {"Retry-After": "1"})
        return JSONResponse({"status": "ready"})

    process = ProcessEndpoint(settings, pool, spool, doorkeeper, known)
    render = RenderEndpoint(settings, pool, spool, doorkeeper)
    attachment = AttachmentEndpoint(settings, pool, spool, doorkeeper)
    unpack = UnpackEndpoint(settings, pool, spool, doorkeeper)
    extract = ExtractEndpoint(settings, pool, spool, doorkeeper)
    app = Starlette(
        routes=[
            Route("/process", MeasuredRoute("/process", process), methods=["POST"]),
            Route("/render", MeasuredRoute("/render", render), methods=["POST"]),
            Route("/attachment", MeasuredRoute("/attachment", attachment), methods=["POST"]),
            Route("/unpack", MeasuredRoute("/unpack", unpack), methods=["POST"]),
            Route("/extract", MeasuredRoute("/extract", extract), methods=["POST"]),
            Route("/mappings", mappings),
            Route("/livez", livez),
            Route("/readyz", readyz),
        ]
    )
    http.install(app)
    app.add_middleware(
        Callers,
        doorman=Doorman(settings.gateway_secrets) if settings.gateway_secrets else None,
        most_bytes=settings.max_upload_mb * 1024 * 1024,
        is_open=settings.gateway_open,
    )
    app.add_middleware(http.SafeHeaders)  # outside of the others: problem documents get the headers too
    app.add_middleware(RequestMetrics, service="gateway")
    app.add_middleware(http.AccessLog, written=settings.access_log, quiet=PROBES)
    return app
