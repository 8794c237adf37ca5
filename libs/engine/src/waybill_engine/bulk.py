"""Cancel, retry or delete every job that matches a filter, in short steps.

Each step takes a connection of its own, locks at most `batch` jobs, and has committed when it is yielded. So nobody
waits for the whole, not even behind a transaction pooler. Whoever stops in the middle can go on later: what is done no
longer matches, and `Step.after` says how far it came.

    async for step in bulk.cancel(db.hot, JobFilter(tenant="acme", kind="convert_pdf")): ...
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from waybill.errors import Conflict, NotFound
from waybill.retention.holds import let_holds_wait
from waybill_engine import control, retention, shelf
from waybill_engine.audit_notes import note_jobs
from waybill_engine.families import lock_family
from waybill_engine.job_filter import NIL, Action, JobFilter, Selection
from waybill_engine.models import State

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_engine.job_filter import Lend

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did."""

    after: uuid.UUID
    """The last job it looked at. Given as `after`, it continues the walk behind that job."""
    done: Sequence[uuid.UUID]
    """Jobs that are cancelled, queued again or deleted now."""
    left: Sequence[uuid.UUID] = ()
    """Jobs that matched and could not be changed: another job has the unique key, or the family changes too fast."""
    stopping: Sequence[uuid.UUID] = ()
    """Running jobs that were asked to stop."""
    below: int = 0
    """How many jobs were cancelled because a parent in `done` or `stopping` was, whether they match or not."""


async def count(lend: Lend, action: Action, wanted: JobFilter) -> int:
    """How many jobs match now. Nothing is locked or changed."""
    selection = await Selection.begin(lend, action, wanted)
    return sum([len(found) async for found in selection.ids()])


async def cancel(
    lend: Lend,
    wanted: JobFilter,
    *,
    reason: str = "Cancelled by an operator",
    after: uuid.UUID = NIL,
    batch: int = 500,
) -> AsyncIterator[Step]:
    """Cancel jobs that wait, and ask running ones to stop. A parent's children go with it."""
    selection = await Selection.begin(lend, Action.CANCEL, wanted)
    async for found in selection.ids(after, batch):
        async with lend() as connection, connection.transaction():
            together = await selection.lock(connection, found)
            done, asked = await control.cancel_childless(connection, list(together), reason)
        alone, left = await _one_by_one(
            lend, selection, together, found, lambda on, job_id: control.cancel(on, job_id, reason)
        )
        done += [job_id for job_id, result in alone.items() if result.state is State.CANCELLED]
        stopping = set(asked).union(*(result.stopping for result in alone.values()))
        below = sum(result.below for result in alone.values())
        yield Step(found[-1], done, left, sorted(stopping), below)


async def retry(
    lend: Lend,
    wanted: JobFilter,
    *,
    reason: str = "Retried by an operator",
    after: uuid.UUID = NIL,
    batch: int = 500,
) -> AsyncIterator[Step]:
    """Queue failed, dead-lettered or cancelled jobs again, as `control.retry` does with one."""
    selection = await Selection.begin(lend, Action.RETRY, wanted)
    async for found in selection.ids(after, batch):
        async with lend() as connection, connection.transaction():
            await shelf.unshelve(connection, found)
            together = await selection.lock(connection, found)
            await control.retry_childless(connection, together, reason)
        alone, left = await _one_by_one(
            lend, selection, together, found, lambda on, job_id: control.retry(on, job_id, reason)
        )
        yield Step(found[-1], sorted({*together, *alone}), left)


async def _one_by_one(
    lend: Lend,
    selection: Selection,
    together: Collection[uuid.UUID],
    found: Sequence[uuid.UUID],
    change: Callable[[Connection, uuid.UUID], Awaitable[T]],
) -> tuple[dict[uuid.UUID, T], list[uuid.UUID]]:
    """Change those that were not changed together, each with its family and in a transaction of its own.

    Returns the results, and the jobs that could not be changed.
    """
    results: dict[uuid.UUID, T] = {}
    left: list[uuid.UUID] = []
    for job_id in found:
        if job_id in together:
            continue
        try:
            async with lend() as connection, connection.transaction():
                await lock_family(connection, job_id)
                if await selection.matches(connection, job_id):
                    results[job_id] = await change(connection, job_id)
        except Conflict:
            left.append(job_id)
        except NotFound:  # somebody deleted it meanwhile
            continue
    return results, left


async def delete(lend: Lend, wanted: JobFilter, *, after: uuid.UUID = NIL, batch: int = 1000) -> AsyncIterator[Step]:
    """Delete ended jobs with their history. The janitor removes their stored files.

    Jobs that are pinned, under legal hold or locked by somebody else just now stay.
    """
    selection = await Selection.begin(lend, Action.DELETE, wanted)
    async for found in selection.ids(after, batch):
        async with lend() as connection, connection.transaction():
            await let_holds_wait(connection)
            gone = list(await selection.lock(connection, found))
            if gone:
                await retention.delete(connection, gone)
                await note_jobs(connection, "jobs.deleted", gone)
        yield Step(found[-1], gone)
