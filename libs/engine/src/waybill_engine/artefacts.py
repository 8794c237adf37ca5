"""Artefacts: files that a job publishes under the same fence as its row.

The file is stored first, under a key that names the run (its lease token and its worker), so two runs never write the
same object. Then a row names it, if and only if the job is still the writer's. A stale worker's file is garbage, never
a result.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

from waybill.errors import LeaseLost
from waybill.storage.keys import dated

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill.storage import Stored

# The job's row stays locked until the caller's transaction ends, so that nobody can take the job over in between.
_PUBLISH = """
WITH mine AS MATERIALIZED (
    SELECT id FROM jobs
     WHERE id = $1 AND lease_token = $2 AND (lease_owner = $8) IS TRUE AND state = 'running'
       FOR UPDATE
)
INSERT INTO job_artefacts (job_id, name, storage_key, media_type, bytes, sha256, lease_token, created_at)
SELECT id, $3, $4, $5, $6, $7, $2, now() FROM mine
    ON CONFLICT (job_id, name) DO UPDATE
       SET storage_key = excluded.storage_key, media_type = excluded.media_type, bytes = excluded.bytes,
           sha256 = excluded.sha256, lease_token = excluded.lease_token, created_at = excluded.created_at
RETURNING job_id
"""

_PUBLISHED = "SELECT storage_key, media_type, bytes, sha256 FROM job_artefacts WHERE job_id = $1 AND name = $2"


class Published(NamedTuple):
    """A job's artefact: where it is stored, and what it is."""

    storage_key: str
    media_type: str
    bytes: int
    sha256: str


def artefact_folder(job_id: uuid.UUID) -> str:
    """The folder of everything that a job's runs have stored."""
    return dated("results", job_id)


def artefact_key(job_id: uuid.UUID, token: int, worker_id: uuid.UUID, name: str) -> str:
    """`results/yy/mm/dd/{job}/{token}-{worker}.{name}`, with the random end of the worker's id."""
    return f"{artefact_folder(job_id)}/{token}-{worker_id.hex[-12:]}.{name}"


async def publish(
    connection: Connection,
    worker_id: uuid.UUID,
    job_id: uuid.UUID,
    token: int,
    name: str,
    stored: Stored,
    media_type: str,
) -> None:
    """Make a stored file the job's artefact `name`. Raises LeaseLost for a stale owner."""
    published = await connection.fetchval(
        _PUBLISH, job_id, token, name, stored.key, media_type, stored.bytes, stored.sha256, worker_id
    )
    if published is None:
        raise LeaseLost()


async def published(connection: Connection, job_id: uuid.UUID, name: str) -> Published | None:
    """The job's artefact `name`, as the latest run published it; None if there is none, or no longer."""
    row = await connection.fetchrow(_PUBLISHED, job_id, name)
    return Published(*row) if row is not None else None
