"""Tells the installed pipelines how jobs ended: `job.succeeded`, `job.failed`, `job.dead_letter`, `job.cancelled`.

Only for jobs of kinds that say `tells_end`. Listeners are called in the transaction that ended the job, so what they
write commits with the end or not at all. Whoever ends jobs calls `tell_ends`: `finish`, `rescue` and `control`.

A listener that fails must not keep a job from ending: the engine would rescue and complete it again and again, and
everybody's jobs would wait. What such a listener wrote is undone, and the error is logged.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg
import structlog

from waybill.changes.events import Event, listeners
from waybill.failures import is_database_outage

if TYPE_CHECKING:
    from waybill.db.database import Connection

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def end_of_job(row: str) -> str:
    """SQL for how `row`, a row of `jobs`, ended; NULL if it has not, or if nobody is to hear of it."""
    return f"""CASE WHEN {row}.tells_end AND {row}.finished_at IS NOT NULL THEN json_build_array(
                  {row}.id, {row}.kind, {row}.tenant, {row}.owner, {row}.state, {row}.error_code, {row}.attempts)::text
              END"""


class EndOfJob(NamedTuple):
    """How a job ended, in the order of `end_of_job`."""

    job_id: str
    kind: str
    tenant: str
    owner: str
    state: str
    code: str | None
    attempts: int

    def event(self) -> Event:
        data: dict[str, Any] = {"kind": self.kind, "attempts": self.attempts}
        if self.code is not None:
            data["code"] = self.code
        return Event(f"job.{self.state}", self.tenant, self.owner, uuid.UUID(self.job_id), data)


async def tell_ends(connection: Connection, ends: Iterable[str | None]) -> None:
    """Call every listener with each of these ends, as `end_of_job` returns them.

    Call it in the transaction that ended the jobs.
    """
    for end in [EndOfJob(*json.loads(text)) for text in ends if text is not None]:
        event = end.event()
        for listener in listeners():
            try:
                async with connection.transaction():  # a savepoint
                    await listener(connection, event)
            except Exception as error:
                # The transaction cannot go on, or must be repeated: that is for the caller.
                if is_database_outage(error) or isinstance(error, asyncpg.TransactionRollbackError):
                    raise
                log.error(
                    "listener_failed", told=event.name, job_id=end.job_id, listener=listener.__module__, exc_info=error
                )
