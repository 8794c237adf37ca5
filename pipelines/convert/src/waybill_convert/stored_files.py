"""Removing what is stored of a conversion, once no row names it any more."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from waybill.storage.keys import dated

if TYPE_CHECKING:
    from waybill.storage import Storage

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def pages_of(job_id: uuid.UUID) -> str:
    """Below this lie the pictures of a document's pages. They go with the document."""
    return dated("pages", job_id)


async def remove(storage: Storage, keys: Sequence[str]) -> None:
    """Best effort: what stays is found by the janitor, and named by no row."""
    for key in keys:
        try:
            await storage.delete(key)
        except Exception as error:  # noqa: BLE001 - whatever the storage says, the answer stands
            log.warning("not_removed", key=key, error=str(error))
