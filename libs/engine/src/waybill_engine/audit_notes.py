"""What the engine writes into the audit trail about jobs, in the transaction that changes them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waybill import audit

if TYPE_CHECKING:
    from waybill.db.database import Connection

_TENANT = "SELECT tenant FROM jobs WHERE id = $1"


async def note_job(connection: Connection, action: str, job_id: uuid.UUID, **detail: Any) -> None:
    """One job, which is there at this moment."""
    tenant = await connection.fetchval(_TENANT, job_id)
    await audit.record(connection, action, f"job:{job_id}", tenant=tenant, detail=detail)


async def note_jobs(connection: Connection, action: str, job_ids: Sequence[uuid.UUID], **detail: Any) -> None:
    """Jobs that are changed together. Each has the same in a history of its own, as long as it is there."""
    if job_ids:
        number = {"jobs": len(job_ids), "first": str(min(job_ids)), "last": str(max(job_ids))}
        await audit.record(connection, action, "jobs", detail={**number, **detail})
