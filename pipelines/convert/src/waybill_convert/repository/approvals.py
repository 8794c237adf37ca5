"""Approving a result that a person had to look at first."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

from waybill import audit
from waybill_engine import control
from waybill_engine.job_locks import share_job

if TYPE_CHECKING:
    from waybill.db.database import Connection

_APPROVE = """
UPDATE conversions
   SET status = 'complete', approved_at = now(), approved_by = $4, changed = pg_current_xact_id(), changed_at = now()
 WHERE job_id = $1 AND owner = $2 AND revision = $3 AND status = 'needs_review' AND deleted_at IS NULL
RETURNING tenant, pages
"""


class Approved(NamedTuple):
    tenant: str
    pages: int | None


async def approve(
    connection: Connection, job_id: uuid.UUID, owner: str, revision: int, *, author: str
) -> Approved | None:
    """Make a result that waits for a person complete. None if it does not wait, or has another revision by now.

    Call it in a transaction.
    """
    # The job is locked first, as by everybody who moves or deletes it.
    if await share_job(connection, job_id) is None:
        return None
    row = await connection.fetchrow(_APPROVE, job_id, owner, revision, author)
    if row is None:
        return None
    approved = Approved(*row)
    await control.note(connection, job_id, "approved", f"Revision {revision} by {author}")
    detail = {"revision": revision}
    await audit.record(connection, "job.approved", f"job:{job_id}", tenant=approved.tenant, detail=detail)
    return approved
