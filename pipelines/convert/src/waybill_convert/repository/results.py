"""A conversion's results: the artefacts a job publishes, and what is noted of them in the conversion's row."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from waybill.db.database import Connection

_PUBLISHED = "SELECT storage_key, bytes, sha256 FROM job_artefacts WHERE job_id = $1 AND name = $2"

_NOTE = "UPDATE conversions SET pages = $2 WHERE job_id = $1"


class Published(NamedTuple):
    """An artefact that a row names."""

    key: str
    bytes: int
    sha256: str


async def published(connection: Connection, job_id: uuid.UUID, name: str) -> Published | None:
    """The job's artefact of this name."""
    row = await connection.fetchrow(_PUBLISHED, job_id, name)
    return Published(*row) if row is not None else None


async def note_result(connection: Connection, job_id: uuid.UUID, pages: int) -> None:
    """Note how long the document was; estimates and pages show it."""
    await connection.execute(_NOTE, job_id, pages)
