"""The services behind the pipeline's routes and pages, created once per API process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, Request

from waybill.security import Principal
from waybill.telemetry.trace_links import TraceLinks
from waybill.web import Context, context_of
from waybill_convert.clients.gateway import Gateway
from waybill_convert.clients.gateway_check import check_gateway
from waybill_convert.clients.page_renderer import GatewayRenderer
from waybill_convert.download_service import Downloads
from waybill_convert.kinds import CONVERT_PDF, with_retries
from waybill_convert.listing_cache import ListingCache
from waybill_convert.mapping_catalogue import catalogue_of
from waybill_convert.mapping_service import TenantMappings
from waybill_convert.permissions import WRITE
from waybill_convert.review_desk import ReviewDesk
from waybill_convert.review_service import Reviews
from waybill_convert.sample_service import MappingSamples
from waybill_convert.service import Conversions
from waybill_convert.settings import ConvertSettings
from waybill_convert.upload_service import Uploads


class ConvertContext:
    """The pipeline's services, and what they share with the rest of the API."""

    def __init__(
        self, context: Context, settings: ConvertSettings, renderer: GatewayRenderer, gateway: Gateway
    ) -> None:
        self.settings = settings
        self.database = context.database
        self.storage = context.storage
        self.space = context.space
        self.streams = context.streams
        self.catalogue = catalogue_of(settings.mappings_dir)
        self.conversions = Conversions(
            context.database,
            context.storage,
            context.changes,
            TraceLinks(context.settings.trace_url_template),
            self.catalogue,
        )
        self.uploads = Uploads(
            context.database,
            context.storage,
            context.changes,
            self.conversions.outlook,
            kind=with_retries(CONVERT_PDF, settings.convert_retries),
        )
        self.downloads = Downloads(context.database)
        self.listings = ListingCache(self.conversions, context.changes)
        self.desk = ReviewDesk(context.storage, processes=settings.api_review_processes)
        self.reviews = Reviews(
            context.database,
            context.storage,
            context.changes,
            self.desk,
            renderer,
            self.catalogue,
        )
        self.mapping_samples = MappingSamples(context.database, context.storage, self.desk, gateway)
        self.tenant_mappings = TenantMappings(context.database, self.catalogue, self.desk, self.mapping_samples)


@asynccontextmanager
async def open_services(context: Context) -> AsyncIterator[ConvertContext]:
    settings = context.settings_of(ConvertSettings)
    renderer = GatewayRenderer(settings.gateway_url, context.storage, settings.gateway_secrets)
    gateway = Gateway(settings.gateway_url, settings.gateway_timeout, settings.gateway_secrets)
    services = ConvertContext(context, settings, renderer, gateway)
    try:
        yield services
    finally:
        await services.reviews.close()
        await services.desk.close()
        await renderer.close()
        await gateway.close()


async def adopt(context: Context, session_owner: str, principal: Principal) -> bool:
    """Hand over what a browser uploaded before it signed in, if the key may upload."""
    if not principal.may(WRITE):
        return False
    await context.service(ConvertContext).uploads.adopt(session_owner, principal)
    return True


async def check(context: Context) -> str | None:
    """Whether the gateway and we trust each other. Probes do not wait long."""
    return await check_gateway(context.settings_of(ConvertSettings), patience=0.5)


async def _services(request: Request) -> ConvertContext:
    """A coroutine, because FastAPI runs dependencies that are plain functions in a thread."""
    return context_of(request).service(ConvertContext)


Shared = Annotated[ConvertContext, Depends(_services)]
