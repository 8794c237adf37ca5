"""The services behind the pipeline's routes and pages, created once per API process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, Request

from waybill.security import Principal
from waybill.security.principals import PUBLIC
from waybill.web import Context, context_of
from waybill_batches.batch_feed import BatchFeed
from waybill_batches.download_service import BatchDownloads
from waybill_batches.permissions import WRITE
from waybill_batches.repository import batches as rows
from waybill_batches.service import Batches
from waybill_batches.settings import BatchSettings
from waybill_batches.upload_service import BatchUploads
from waybill_engine import arrivals


class BatchContext:
    """The pipeline's services, and what they share with the rest of the API."""

    def __init__(self, context: Context, settings: BatchSettings) -> None:
        self.settings = settings
        self.database = context.database
        self.storage = context.storage
        self.space = context.space
        self.streams = context.streams
        self.batches = Batches(context.database)
        self.uploads = BatchUploads(context.database, context.storage)
        self.downloads = BatchDownloads(self.batches)
        self.feed = BatchFeed(context.database)


@asynccontextmanager
async def open_services(context: Context) -> AsyncIterator[BatchContext]:
    yield BatchContext(context, context.settings_of(BatchSettings))


async def adopt(context: Context, session_owner: str, principal: Principal) -> bool:
    """Hand over what a browser uploaded before it signed in, if the key may upload."""
    if not principal.may(WRITE):
        return False
    async with context.database.hot() as connection, connection.transaction():
        if await arrivals.is_erased(connection, PUBLIC, session_owner, None):
            return False
        await rows.adopt(connection, session_owner, principal.owner)
    return True


async def _services(request: Request) -> BatchContext:
    """A coroutine, because FastAPI runs dependencies that are plain functions in a thread."""
    return context_of(request).service(BatchContext)


Shared = Annotated[BatchContext, Depends(_services)]
