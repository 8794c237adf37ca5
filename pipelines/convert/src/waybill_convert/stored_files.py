"""Removal of a conversion's stored files, once no row names them any more."""

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
    """The storage prefix of the pictures of a document's pages. They are removed with the document."""
    return dated("pages", job_id)


async def remove(storage: Storage, keys: Sequence[str]) -> None:
    """Delete files as far as possible. The janitor finds the rest, because no row names it."""
    for key in keys:
        try:
            await storage.delete(key)
        except Exception as error:  # noqa: BLE001 - a failing storage must not fail the request
            log.warning("not_removed", key=key, error=str(error))
