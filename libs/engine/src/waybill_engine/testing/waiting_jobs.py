"""Jobs that wait, as a test wants to see them: what was enqueued, and what becomes due as time passes.

Time passes for jobs, not for the clock: `advance` sets their times back, which comes to the same and works with every
connection, transaction and server.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlmodel.ext.asyncio.session import AsyncSession

from waybill.db.database import driver
from waybill.errors import Conflict
from waybill_engine.kinds import JobKind
from waybill_engine.models import State
from waybill_engine.promotion import promote_due

if TYPE_CHECKING:
    from waybill.db.database import Connection

_ENQUEUED = """
SELECT id, kind, tenant, owner, queue, priority, cost, state, payload::text AS payload, unique_key, parent_id,
       pending_children,
       CASE WHEN pending_children = 0 THEN greatest(extract(epoch FROM run_at - now()), 0)::float8 END AS due_in
  FROM jobs
 WHERE state = ANY ($1::text[]) AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR tenant = $3)
   AND ($4::text IS NULL OR queue = $4) AND ($5::text IS NULL OR payload @> $5::text::jsonb)
 ORDER BY id
"""

# A parent that waits for its children is scheduled at infinity, and stays there.
_MAKE_DUE = """
UPDATE jobs SET run_at = now()
 WHERE state = 'scheduled' AND run_at < 'infinity' AND ($1::uuid IS NULL OR id = $1)
"""

_ADVANCE = """
UPDATE jobs
   SET run_at = run_at - passed, unique_until = unique_until - passed, created_at = created_at - passed,
       updated_at = updated_at - passed, started_at = started_at - passed, finished_at = finished_at - passed
  FROM (SELECT $1::float8 * interval '1 second' AS passed) AS time
"""


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that was enqueued."""

    id: uuid.UUID
    kind: str
    tenant: str
    owner: str
    queue: str
    priority: int
    cost: int
    state: State
    payload: dict[str, Any]
    unique_key: str | None
    parent_id: uuid.UUID | None
    pending_children: int
    due_in: float | None
    """In how many seconds it may start; None if it waits for its children."""


async def enqueued(
    on: Connection | AsyncSession,
    *,
    kind: JobKind | str | None = None,
    tenant: str | None = None,
    queue: str | None = None,
    payload: Mapping[str, Any] | None = None,
    states: Sequence[State] = (State.SCHEDULED, State.QUEUED),
) -> list[WaitingJob]:
    """The jobs that wait and match, the oldest first. `payload` is what theirs must contain; it may have more.

    [job] = await enqueued(connection, kind=SEND_EMAIL, payload={"to": "ada@example.com"})
    """
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    rows = await connection.fetch(
        _ENQUEUED,
        [state.value for state in states],
        kind.name if isinstance(kind, JobKind) else kind,
        tenant,
        queue,
        None if payload is None else json.dumps(payload),
    )
    return [
        WaitingJob(**dict(row) | {"state": State(row["state"]), "payload": json.loads(row["payload"])}) for row in rows
    ]


async def make_due(on: Connection | AsyncSession, job_id: uuid.UUID | None = None) -> int:
    """Queue a scheduled job, or all of them, whatever their time; how many became due."""
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    changed = await connection.execute(_MAKE_DUE, job_id)
    if job_id is not None and changed == "UPDATE 0":
        raise Conflict(f"Job {job_id} is not scheduled for a time.")
    return await _promote_all(connection)


async def advance(on: Connection | AsyncSession, seconds: float) -> int:
    """Let time pass for all jobs: those that are due by then are queued, unique windows end, ended jobs age.

    Returns how many jobs became due.
    """
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError("time passes forwards")
    connection = await driver(on) if isinstance(on, AsyncSession) else on
    await connection.execute(_ADVANCE, seconds)
    return await _promote_all(connection)


async def _promote_all(connection: Connection) -> int:
    promoted = 0
    while some := (await promote_due(connection)).count:
        promoted += some
    return promoted
