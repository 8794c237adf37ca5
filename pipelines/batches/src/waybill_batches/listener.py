"""What batches make of events: how their own jobs ended, and what other pipelines did with a file of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from waybill.changes import Event
from waybill_batches.kinds import PROCESS_BATCH, SUMMARIZE_RUN
from waybill_batches.repository import batches, files
from waybill_batches.repository.files import FilesOfJob
from waybill_batches.resummary import summarize_again
from waybill_batches.status import BatchStatus, FileStatus

if TYPE_CHECKING:
    from waybill.db.database import Connection

_ENDED_BADLY: Mapping[str, FileStatus] = {
    "job.failed": FileStatus.FAILED,
    "job.dead_letter": FileStatus.FAILED,
    "job.cancelled": FileStatus.CANCELLED,
}
_CONVERTED: Mapping[str, FileStatus] = {
    "convert.completed": FileStatus.COMPLETE,
    "convert.needs_review": FileStatus.NEEDS_REVIEW,
    "convert.corrected": FileStatus.COMPLETE,
}
_GONE = "convert.expired"


async def hear(connection: Connection, event: Event) -> None:
    if event.name in _ENDED_BADLY and event.data.get("kind") == SUMMARIZE_RUN.name:
        await _end_with_summary(connection, event)
    elif event.name in _ENDED_BADLY and event.data.get("kind") == PROCESS_BATCH.name:
        if _ENDED_BADLY[event.name] is FileStatus.FAILED:
            await batches.note_unpacking_failed(connection, event.subject)
    elif event.name in _ENDED_BADLY or event.name in _CONVERTED or event.name == _GONE:
        owned = await files.owned_by_job(connection, event.subject)
        if owned is not None:
            await _end_files(connection, event, owned)


async def _end_files(connection: Connection, event: Event, owned: FilesOfJob) -> None:
    # Before its files: whoever retries or sums up a batch locks it first, too.
    await batches.share(connection, owned.batch_id)
    if event.name in _ENDED_BADLY:
        if not await files.end_with_job(connection, owned, event.subject, _ENDED_BADLY[event.name]):
            return
    elif event.name == _GONE:
        await files.note_gone(connection, owned, event.subject)
    else:
        await files.note_converted(
            connection,
            owned,
            event.subject,
            _CONVERTED[event.name],
            amounts=event.data.get("amounts"),
            record=_file(event.data, "record"),
            xml=_file(event.data, "xml"),
            reused=event.data.get("reused"),
        )
    await batches.tell(connection, owned.owner)
    await summarize_again(connection, owned.batch_id)


async def _end_with_summary(connection: Connection, event: Event) -> None:
    """The parent of a run was cancelled, or its summary cannot be made: the batch ends all the same."""
    batch_id = await batches.of_run_job(connection, event.subject)
    if batch_id is None:
        return
    cancelled = event.name == "job.cancelled"
    if cancelled:
        await files.cancel_rest(connection, batch_id)
    status = BatchStatus.CANCELLED if cancelled else BatchStatus.FAILED
    await batches.end_without_summary(connection, batch_id, status)


def _file(data: Mapping[str, Any], name: str) -> tuple[str, int] | None:
    match data.get("files"):
        case {**named} if isinstance(found := named.get(name), dict):
            return str(found["key"]), int(found["bytes"])
    return None
