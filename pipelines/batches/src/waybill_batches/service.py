"""What its owner can do with a batch: list, look, retry, cancel, delete. Somebody else's looks like a missing one."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waybill import audit
from waybill.errors import Conflict, Expired, NotFound, Refused
from waybill.messages import msg
from waybill_batches.cursors import FilePosition, parse_batch_cursor
from waybill_batches.file_jobs import jobs_to_retry
from waybill_batches.kinds import PROCESS_BATCH, SUMMARIZE_RUN
from waybill_batches.repository import batches, erasure, files, listing
from waybill_batches.repository.batches import BatchToWork
from waybill_batches.status import ACTIVE, RETRYABLE, BatchStatus, FileStatus
from waybill_batches.views import BatchListing, BatchView, FileListing, FileView, batch_view, file_view
from waybill_engine import NewJob, control, enqueue, enqueue_family, kind_named
from waybill_engine.explain import Explanation, explain
from waybill_engine.job_locks import lock_jobs

if TYPE_CHECKING:
    from waybill.db import Database
    from waybill.db.database import Connection

MOST_LISTED = 500
ERRORS_FIRST: Sequence[FileStatus] = (
    FileStatus.FAILED,
    FileStatus.NEEDS_REVIEW,
    FileStatus.PROCESSING,
    FileStatus.QUEUED,
    FileStatus.CANCELLED,
    FileStatus.EXPIRED,
    FileStatus.COMPLETE,
)
"""What a person has to do something about comes first."""
_DELETED_TOGETHER = 500


class Batches:
    """The service; one per process."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, owner: str, *, statuses: Sequence[BatchStatus] = (), cursor: str | None = None, limit: int = 50
    ) -> BatchListing:
        """An owner's batches, newest first."""
        after = parse_batch_cursor(cursor) if cursor is not None else None
        async with self._database.hot() as connection:
            rows = await listing.page(connection, owner, statuses, after, limit + 1)
            found = await views(connection, rows[:limit])
            active = await listing.active_count(connection, owner)
        return BatchListing(found, str(found[-1].id) if len(rows) > limit else None, active)

    async def get(self, owner: str, batch_id: uuid.UUID) -> BatchView:
        async with self._database.hot() as connection:
            return (await views(connection, [await _own(connection, owner, batch_id)]))[0]

    async def summary(self, owner: str, batch_id: uuid.UUID) -> dict[str, Any] | None:
        async with self._database.hot() as connection:
            await _own(connection, owner, batch_id)
            return await listing.summary(connection, batch_id)

    async def files(
        self,
        owner: str,
        batch_id: uuid.UUID,
        *,
        statuses: Sequence[FileStatus] = (),
        kind: str | None = None,
        words: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
        in_order: bool = False,
    ) -> FileListing:
        """Files of a batch: what failed first, or in the order of the ZIP."""
        async with self._database.hot() as connection:
            await _own(connection, owner, batch_id)
            position = FilePosition.parse(cursor) if cursor is not None else FilePosition(0, -1)
            if in_order and not statuses:
                rows = await listing.files_in_order(
                    connection, batch_id, after=position.number, limit=limit + 1, kind=kind, words=words
                )
                found = [file_view(row) for row in rows[:limit]]
                return FileListing(found, _next(found, len(rows) > limit, lambda _file: 0))
            order = [one for one in ERRORS_FIRST if not statuses or one in statuses]
            rows = await _by_status(connection, batch_id, order, position, limit + 1, kind, words)
        found = [file_view(row) for row in rows[:limit]]
        return FileListing(found, _next(found, len(rows) > limit, lambda file: _place(order, file)))

    async def file(self, owner: str, batch_id: uuid.UUID, doc_id: str) -> FileView:
        async with self._database.hot() as connection:
            await _own(connection, owner, batch_id)
            row = await listing.file(connection, batch_id, doc_id)
        if row is None:
            raise NotFound(msg("batches.no_file"))
        return file_view(row)

    async def explain(self, owner: str, batch_id: uuid.UUID) -> Explanation:
        """Why is it not done? What its files wait for, if none of them is being worked."""
        async with self._database.hot() as connection:
            row = await _own(connection, owner, batch_id)
            held_up = await listing.held_up_job(connection, row["run_job"])
            return await explain(connection, held_up or row["run_job"])

    async def retry(self, owner: str, batch_id: uuid.UUID) -> BatchView:
        """Work what failed or was cancelled once more, as another run of the batch."""
        async with self._database.hot() as connection:
            async with connection.transaction():
                await _own(connection, owner, batch_id)
                status = await batches.lock(connection, batch_id)
                if status is None:
                    raise NotFound(msg("batches.no_batch"))
                if status not in RETRYABLE:
                    raise Conflict(msg("batches.retry_only", status=status))
                batch = await batches.to_work(connection, batch_id)
                assert batch is not None  # noqa: S101 - it is locked
                await _run_again(connection, batch)
            return (await views(connection, [await _own(connection, owner, batch_id)]))[0]

    async def cancel(self, owner: str, batch_id: uuid.UUID) -> BatchView:
        """Stop working it. What is done stays done."""
        async with self._database.hot() as connection:
            row = await _own(connection, owner, batch_id)
            if BatchStatus(row["status"]) not in ACTIVE:
                raise Conflict(msg("batches.cancel_only", status=row["status"]))
            try:
                await control.cancel(connection, row["run_job"], "Cancelled by its owner")
            except Conflict:
                raise Conflict(msg("batches.cancel_late")) from None
            return (await views(connection, [await _own(connection, owner, batch_id)]))[0]

    async def delete(self, owner: str, batch_id: uuid.UUID) -> None:
        """Delete a batch with its files, its results and its jobs. The janitor removes what was stored."""
        async with self._database.hot() as connection:
            row = await _own(connection, owner, batch_id)
            if BatchStatus(row["status"]) in ACTIVE:
                raise Conflict(msg("batches.delete_active"))
            while jobs := await erasure.ended_jobs_of_batch(connection, batch_id, _DELETED_TOGETHER):
                async with connection.transaction():
                    await erasure.delete_jobs(connection, row["tenant"], await lock_jobs(connection, jobs))
            if await erasure.any_left(connection, batch_id):
                raise Conflict(msg("batches.delete_stopping"))
            async with connection.transaction():
                await erasure.delete_batch(connection, row["tenant"], batch_id)


async def _run_again(connection: Connection, batch: BatchToWork) -> None:
    if not batch.unpacked:
        run = NewJob(SUMMARIZE_RUN, batch.tenant, {"batch": str(batch.id)}, owner=batch.owner)
        await batches.begin_run(connection, batch.id, run.id)
        unpack = NewJob(
            kind_named(PROCESS_BATCH.name),
            batch.tenant,
            {"batch": str(batch.id)},
            owner=batch.owner,
            cost=max(batch.bytes, 1),
        )
        await enqueue_family(connection, run, [unpack])
        return
    jobs, job_of = jobs_to_retry(batch, await files.to_retry(connection, batch.id))
    summary_only = not jobs and await listing.summary(connection, batch.id) is None
    if not jobs and not summary_only:
        raise Expired(msg("batches.nothing_to_retry"))
    run = NewJob(SUMMARIZE_RUN, batch.tenant, {"batch": str(batch.id)}, owner=batch.owner)
    await batches.begin_run(connection, batch.id, run.id)
    if summary_only:
        await enqueue(connection, run)
        return
    await files.again(connection, batch.id, job_of)
    await enqueue_family(connection, run, [job.new_job(batch) for job in jobs])


async def _own(connection: Connection, owner: str, batch_id: uuid.UUID) -> Any:
    row = await listing.one(connection, batch_id)
    if row is not None and row["owner"] != owner:
        audit.refuse("job.foreign", f"job:{batch_id}", tenant=row["tenant"])
        row = None
    if row is None:
        raise NotFound(msg("batches.no_batch"))
    return row


async def views(connection: Connection, rows: Sequence[Any]) -> list[BatchView]:
    """Rows with their counts: those of now for what is being worked, else those that its end has written."""
    active = [row for row in rows if BatchStatus(row["status"]) in ACTIVE]
    counts = await listing.counts(connection, [row["id"] for row in active], [row["run_job"] for row in active])
    return [batch_view(row, counts.get(row["id"])) for row in rows]


async def _by_status(
    connection: Connection,
    batch_id: uuid.UUID,
    order: Sequence[FileStatus],
    position: FilePosition,
    limit: int,
    kind: str | None,
    words: str | None,
) -> list[Any]:
    """Files of one status after the other. Whether a queued one is being worked is known by its job only."""
    found: list[Any] = []
    for place in range(position.place, len(order)):
        status = order[place]
        running = {FileStatus.PROCESSING: True, FileStatus.QUEUED: False}.get(status)
        found += await listing.files(
            connection,
            batch_id,
            statuses=[FileStatus.QUEUED if running is not None else status],
            after=position.number if place == position.place else -1,
            limit=limit - len(found),
            kind=kind,
            words=words,
            running=running,
        )
        if len(found) >= limit:
            break
    return found


def _place(order: Sequence[FileStatus], file: FileView) -> int:
    return order.index(file.status) if file.status in order else 0


def _next(found: Sequence[FileView], more: bool, place: Any) -> str | None:
    return str(FilePosition(place(found[-1]), found[-1].number)) if more else None


def check_words(words: str | None) -> None:
    """Refuse what cannot be searched for."""
    if words is not None and "\0" in words:
        raise Refused(msg("batches.search"))
