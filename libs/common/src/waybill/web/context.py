"""What the API's parts share while it runs, in one place and with its types."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request

from waybill.changes.subscriptions import Changes
from waybill.config import ApiSettings
from waybill.db import Database
from waybill.security import SessionSigner
from waybill.security.secrets import shared_secret
from waybill.storage import Space, Storage
from waybill.web.key_cache import Keyring
from waybill.web.live_streams import Streams
from waybill_convert.clients.page_renderer import GatewayRenderer
from waybill_convert.listing_cache import Listings
from waybill_convert.review_service import Reviews
from waybill_convert.reviser import Corrector
from waybill_convert.service import Conversions


class Context:
    """Made before the first request and closed after the last. The database and the storage stay their owner's."""

    signer: SessionSigner

    def __init__(self, settings: ApiSettings, database: Database, storage: Storage, mappings: list[str]) -> None:
        self.settings = settings
        self.database = database
        self.storage = storage
        self.mappings = mappings
        """The names that may be chosen."""
        self.space = Space(storage, settings.storage_min_free_mb * 2**20)
        self.changes = Changes(database)
        self.conversions = Conversions(database, storage, self.changes)
        self._renderer = GatewayRenderer(settings.gateway_url, storage)
        self.corrector = Corrector(settings.gateway_mappings_dir)
        self.reviews = Reviews(database, storage, self.changes, self.corrector, self._renderer)
        self.keyring = Keyring(database, self.changes)
        self.listings = Listings(self.conversions, self.changes)
        self.streams = Streams(self.listings, self.changes, self.keyring, most_per_owner=settings.api_streams_per_owner)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.signer = SessionSigner(await self._secret(), lasts=self.settings.api_session_lifetime * 86400)
        self.changes.start()
        try:
            yield
        finally:
            self.streams.close()
            await self.reviews.close()
            await self._renderer.close()
            await self.changes.stop()

    async def _secret(self) -> bytes:
        given = self.settings.api_session_secret
        if given is not None:
            return given.get_secret_value().encode()
        async with self.database.hot() as connection:
            return await shared_secret(connection, "sessions")


def context_of(request: Request) -> Context:
    found: Context = request.app.state.context
    return found
