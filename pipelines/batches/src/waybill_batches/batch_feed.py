"""The feed of the live stream: an owner's batches as they change. While one is worked, its counts are its changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pydantic_core

from waybill.errors import Refused
from waybill.messages import msg
from waybill_batches.repository import listing
from waybill_batches.schemas import batch_json
from waybill_batches.service import views
from waybill_batches.views import BatchView

if TYPE_CHECKING:
    from waybill.db import Database

_AT_ONCE = 200


@dataclass(frozen=True)
class BatchFeedAnswer:
    batches: list[BatchView]
    """Those that changed since the cursor, and those that are being worked."""
    changed: bool
    cursor: str
    more: bool

    @property
    def standing(self) -> object:
        return [(view.id, view.status, view.counts) for view in self.batches]

    @cached_property
    def body(self) -> bytes:
        return pydantic_core.to_json({"batches": [batch_json(view) for view in self.batches]})


class BatchFeed:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, owner: str) -> str:  # noqa: ARG002 - a feed's form
        async with self._database.hot() as connection:
            return str(await listing.oldest_transaction(connection))

    async def after(self, owner: str, cursor: str) -> BatchFeedAnswer:
        since = parse_stream_cursor(cursor)
        async with self._database.hot() as connection:
            # Read before the rows: what commits in between is seen twice, never missed.
            now = await listing.oldest_transaction(connection)
            rows = await listing.changed(connection, owner, since, _AT_ONCE)
            found = await views(connection, rows)
        more = len(rows) == _AT_ONCE and since < rows[-1]["changed"] < now
        return BatchFeedAnswer(
            found,
            any(not view.active for view in found) and since < now,
            str(rows[-1]["changed"] if more else now),
            more,
        )


def parse_stream_cursor(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise Refused(msg("batches.cursor"))
    return int(text)
