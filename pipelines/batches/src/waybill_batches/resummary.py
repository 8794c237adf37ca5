"""Sums a batch up again after it had ended, because a person corrected, approved or retried one of its files."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from waybill_batches.kinds import SUMMARIZE_RUN
from waybill_batches.repository import batches
from waybill_batches.status import DONE, BatchStatus
from waybill_engine import NewJob, Unique, enqueue

if TYPE_CHECKING:
    from waybill.db.database import Connection

_SOON = 2.0
"""Seconds, so that many corrections cost one summary."""
_ENDED = (*DONE, BatchStatus.FAILED, BatchStatus.CANCELLED, BatchStatus.EXPIRED)


async def summarize_again(connection: Connection, batch_id: uuid.UUID) -> None:
    batch = await batches.to_work(connection, batch_id)
    if batch is None or batch.status not in _ENDED:
        return
    unique = Unique(f"summarize {batch_id}")
    payload = {"batch": str(batch_id)}
    made = await enqueue(
        connection, NewJob(SUMMARIZE_RUN, batch.tenant, payload, owner=batch.owner, delay=_SOON, unique=unique)
    )
    if made.created:
        await batches.note_run(connection, batch_id, made.id)
