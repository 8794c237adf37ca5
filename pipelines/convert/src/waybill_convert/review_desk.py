"""Where records are read, corrected and put on a page: in side processes, in turn between owners.

A record of three thousand lines has seven megabytes, and takes the processor for a second. On the event loop, one
visitor who opens forty of them would stop the API for everybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from waybill.errors import Expired, NotFound
from waybill.web.fair_places import FairPlaces
from waybill.web.side_processes import SideProcesses

if TYPE_CHECKING:
    from waybill.storage import Storage
    from waybill_convert.download_service import StoredFile

T = TypeVar("T")

_WITHIN = 30.0
"""Seconds that one piece of work may take."""
_WAITING_PER_OWNER = 12
"""Requests of one owner that may wait: enough for somebody who opens a dozen documents in tabs."""
_WAITING = 100
"""Requests that may wait in all."""

_PRELOAD = [
    "lxml.etree",
    "waybill_documents.corrections",
    "waybill_convert.pages.review_values",
    "waybill_convert.pages.review_pages",
    "waybill_convert.pages.review_html",
    "waybill_convert.pages.prepared",
]


class ReviewDesk:
    def __init__(self, storage: Storage, *, processes: int) -> None:
        self._storage = storage
        self._places = FairPlaces(processes, waiting_per_owner=_WAITING_PER_OWNER, waiting=_WAITING)
        # A call that was given up may still be leaving its thread when the next one begins.
        self._processes = SideProcesses(2 * processes, preload=_PRELOAD)

    async def work(
        self,
        owner: str,
        files: Sequence[StoredFile | None],
        function: Callable[..., T],
        *arguments: object,
        within: float = _WITHIN,
    ) -> T:
        """Call a function of `review_work` with the contents of these files, when it is this owner's turn.

        The files are read only then, so that requests which wait need no memory.
        """
        async with self._places.take(owner):
            contents = [await self._content(file) if file is not None else None for file in files]
            return await self._processes.run(function, *contents, *arguments, within=within)

    async def close(self) -> None:
        await asyncio.to_thread(self._processes.close)

    async def _content(self, file: StoredFile) -> bytes:
        try:
            return await self._storage.get(file.storage_key)
        except NotFound:
            raise Expired() from None
