"""Checkpoints: a little state that a run leaves for the next one, if it does not get to the end.

It lies in the job's row, is written under the fence, and so survives retries, releases, rescues and a person's retry.
Only handlers that use checkpoints pay for them: a claim does not read them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from waybill_engine.lease import fence
from waybill_engine.new_job import compact_json

if TYPE_CHECKING:
    from waybill.db.database import Connection

MAX_CHECKPOINT = 16 * 1024
"""Bytes of JSON. A checkpoint says where to go on; what was done so far belongs into tables and storage."""

# No index has this column, so it is a HOT update.
_SAVE = "UPDATE jobs SET checkpoint = $2::text::jsonb WHERE id = $1"

_LOAD = "SELECT checkpoint::text FROM jobs WHERE id = $1"


async def save(
    connection: Connection, worker_id: uuid.UUID, job_id: uuid.UUID, token: int, state: Mapping[str, Any] | None
) -> None:
    """Replace a job's checkpoint, or remove it. Raises LeaseLost if the job is not this run's any more."""
    text = compact_json(state, "checkpoint", MAX_CHECKPOINT) if state is not None else None
    async with connection.transaction():
        await fence(connection, worker_id, job_id, token)
        await connection.execute(_SAVE, job_id, text)


async def load(connection: Connection, job_id: uuid.UUID) -> dict[str, Any] | None:
    text = await connection.fetchval(_LOAD, job_id)
    state: dict[str, Any] | None = json.loads(text) if text is not None else None
    return state
