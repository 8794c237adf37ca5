"""What one may do with conversions: upload, list, look, fetch, retry, cancel, pin, delete. Each for one owner.

A foreign id is answered like one that does not exist, except where the product's notes name 403 (`result`).
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog

from waybill import garbage, retention
from waybill.db import driver
from waybill.errors import Conflict, Expired, Forbidden, NotFound, NotReady
from waybill.security.principals import Principal
from waybill.storage import Storage
from waybill_convert.counts import Counts
from waybill_convert.cursors import Place, Since, parse_since
from waybill_convert.kinds import CONVERT_PDF, PROVENANCE, XML
from waybill_convert.models import ConversionView, Listing, Upload, Uploaded
from waybill_convert.outlook import Outlook, source_kept
from waybill_convert.repository import conversions, revisions
from waybill_convert.status import Status
from waybill_convert.stored_files import pages_of, remove
from waybill_engine import NewJob, control, enqueue, queries
from waybill_engine.artefacts import artefact_folder
from waybill_engine.explain import Explanation, explain
from waybill_engine.models import State
from waybill_engine.queries import Happening

if TYPE_CHECKING:
    from waybill.changes.subscriptions import Changes
    from waybill.db import Database
    from waybill.db.database import Connection

log: structlog.stdlib.BoundLogger = structlog.get_logger()

MOST_LISTED = 500
_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class Result:
    """A stored file that an owner may have."""

    job_id: uuid.UUID
    original_name: str
    storage_key: str
    media_type: str
    bytes: int
    sha256: str | None = None


class Conversions:
    """The service, for one process."""

    def __init__(self, database: Database, storage: Storage, changes: Changes) -> None:
        self._database = database
        self._storage = storage
        self._changes = changes
        self._outlook = Outlook(database, changes)
        self._counts = Counts(changes)

    # Coming in

    async def upload(self, principal: Principal, upload: Upload, *, force: bool = False) -> Uploaded:
        """Turn a stored PDF into a job, or find the job that it is already.

        The stored object belongs to the job from now on; it is removed if there was such a job before.
        """
        async with self._transaction() as connection:
            existing = None
            if not force:
                await conversions.lock_same(connection, principal.owner, upload)
                existing = await conversions.find_same(connection, principal.owner, upload)
            if existing is not None:
                await conversions.reuse(connection, existing)
            else:
                job = NewJob(
                    CONVERT_PDF,
                    tenant=principal.tenant,
                    owner=principal.owner,
                    cost=max(1, upload.bytes),
                    payload={
                        "upload_key": upload.key,
                        "mapping": upload.mapping,
                        "original_name": upload.original_name,
                        "bytes": upload.bytes,
                        "sha256": upload.sha256,
                    },
                    id=upload.job_id,
                )
                await enqueue(connection, job)
                await conversions.insert(connection, principal.tenant, principal.owner, upload)
            row = await conversions.get(connection, existing or upload.job_id)
        if existing is not None:
            await remove(self._storage, [upload.key])
        log.info("uploaded", job_id=str(existing or upload.job_id), bytes=upload.bytes, reused=existing is not None)
        # From what is remembered: it is committed, and nothing may fail any more.
        self._changes.changed(principal.owner)
        return Uploaded(self._outlook.view(row), existing)

    async def adopt(self, session: str, principal: Principal) -> int:
        """What a browser uploaded before it signed in is its tenant's from now on; how many there are.

        They stay billed to whom they were queued for: who pays for a job is decided once.
        """
        async with self._transaction() as connection:
            adopted = await conversions.adopt(connection, session, principal.owner)
        self._changes.changed(session)
        self._changes.changed(principal.owner)
        if adopted:
            log.info("adopted", jobs=adopted, owner=principal.owner)
        return adopted

    # Looking

    async def listing(
        self,
        owner: str,
        *,
        statuses: Sequence[Status] = (),
        words: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Listing:
        """The owner's conversions, newest first."""
        after = Place.parse(cursor) if cursor else None
        await self._outlook.refresh()
        async with self._database.hot() as connection:
            oldest, counts = await self._counts.look(connection, owner)
            rows = await conversions.page(
                connection, owner, statuses=statuses, words=words, after=after, limit=limit + 1
            )
        more, rows = len(rows) > limit, rows[:limit]
        last = str(Place(rows[-1]["listed_at"], rows[-1]["job_id"])) if more else None
        return Listing([self._outlook.view(row) for row in rows], last, str(Since(oldest)), counts, self._outlook.hold)

    async def changes_since(self, owner: str, since: str, *, limit: int = MOST_LISTED) -> Listing:
        """What of the owner's has changed. `next` is set if there is more: ask again with it as `since`."""
        asked = parse_since(since)
        await self._outlook.refresh()
        async with self._database.hot() as connection:
            oldest, counts = await self._counts.look(connection, owner)
            if isinstance(asked, datetime):
                first = await conversions.first_since(connection, owner, asked)
                asked = Since(first or oldest)
            begun = asked.floor if asked.floor is not None else asked.xid
            if begun > oldest:  # from the future: the database was restored from a backup
                asked = Since(0)
            asked = Since(asked.xid, oldest if asked.floor is None else asked.floor, asked.after)
            rows, gone, more = await conversions.changed(connection, owner, asked, limit)
        if not rows and not gone and asked.after is None:
            # Nothing new: the old cursor is as good, and whoever asks again asks for what is remembered.
            return Listing([], None, str(Since(asked.xid)), counts, self._outlook.hold)
        jobs = [self._outlook.view(row) for row in rows]
        return Listing(
            jobs, str(more) if more else None, str(Since(asked.floor or 0)), counts, self._outlook.hold, gone
        )

    async def get(self, owner: str, job_id: uuid.UUID) -> ConversionView:
        await self._outlook.refresh()
        async with self._database.hot() as connection:
            return self._outlook.view(await _mine(connection, owner, job_id))

    async def events(self, owner: str, job_id: uuid.UUID) -> list[Happening]:
        async with self._database.transaction() as session:
            await _mine(await driver(session), owner, job_id)
            return await queries.history(session, await queries.get_job(session, job_id))

    async def explain(self, owner: str, job_id: uuid.UUID) -> Explanation:
        async with self._database.hot() as connection:
            await _mine(connection, owner, job_id)
            return await explain(connection, job_id)

    # Fetching

    async def result(self, owner: str, job_id: uuid.UUID, name: str = XML) -> Result:
        """A finished conversion's file, of its latest revision. Somebody else's is Forbidden, as the notes want it."""
        async with self._database.hot() as connection:
            row = await conversions.get(connection, job_id)
            if row is None:
                raise NotFound("There is no such job here.")
            if row["owner"] != owner:
                raise Forbidden("This result is not yours.")
            status = Status(row["status"])
            if status is Status.EXPIRED:
                raise Expired()
            if status is not Status.COMPLETE:
                raise NotReady(_NOT_READY.get(status, _NOT_READY[Status.QUEUED]))
            found = await revisions.file(connection, job_id, row["revision"], name)
        if found is None:
            raise Expired() if name == XML else NotFound("There is no such file of this job.")
        return Result(
            job_id, row["original_name"], found["storage_key"], found["media_type"], found["bytes"], found["sha256"]
        )

    async def provenance(self, owner: str, job_id: uuid.UUID) -> Result:
        """Where every value of the result comes from. A foreign id looks like a missing one."""
        try:
            return await self.result(owner, job_id, PROVENANCE)
        except Forbidden:
            raise NotFound("There is no such job here.") from None

    async def results(self, owner: str, job_ids: Sequence[uuid.UUID]) -> list[Result]:
        """Several at once; what is wrong with the first that is not ready is raised."""
        return [await self.result(owner, job_id) for job_id in dict.fromkeys(job_ids)]

    async def every_result(self, owner: str) -> AsyncIterator[Result]:
        """All that are ready at this moment, newest first. What is removed while they are gone through is left out.

        No connection is held meanwhile: whoever takes them may take its time.
        """
        async with self._database.hot() as connection:
            ready = await conversions.ready(connection, owner)
        if not ready:
            raise NotReady("There is nothing to download yet.")
        for at in range(0, len(ready), _AT_A_TIME):
            async with self._database.hot() as connection:
                rows = await conversions.xml_of(connection, owner, ready[at : at + _AT_A_TIME])
            for row in rows:
                yield Result(row["job_id"], row["original_name"], row["storage_key"], "application/xml", row["bytes"])

    async def note_downloaded(self, job_ids: Sequence[uuid.UUID]) -> None:
        async with self._database.hot() as connection:
            await conversions.note_downloaded(connection, job_ids)

    # Stepping in

    async def retry(self, owner: str, job_id: uuid.UUID) -> ConversionView:
        """Convert again what failed, was given up or cancelled, from the document that is still there.

        Conflict, naming the other job, if the same document is being converted in another job, or was in a later one.
        """
        async with self._database.hot() as connection:
            row = await _mine(connection, owner, job_id)
        if Status(row["status"]) not in (Status.FAILED, Status.CANCELLED):
            raise Conflict(f"Only what failed or was cancelled can be tried again; this is {row['status']}.")
        # No connection is held while the storage is asked, which may be slow.
        if not source_kept(row) or not await self._storage.exists(row["upload_key"]):
            raise Expired("The document is no longer here. Please upload it again.")
        async with self._transaction() as connection:
            # Under the lock that uploads take: one of the same document comes before this, or finds what we queue.
            document = await conversions.document(connection, job_id)
            if document is None:
                raise NotFound("There is no such job here.")
            await conversions.lock_same(connection, owner, document)
            if (twin := await conversions.find_twin(connection, owner, document)) is not None:
                raise Conflict(
                    "This document was uploaded again, and that is under way or done already.",
                    detail={"job_id": str(twin)},
                )
            await control.retry(connection, job_id, "Retried by its owner")
        self._changes.changed(owner)
        return await self.get(owner, job_id)

    async def cancel(self, owner: str, job_id: uuid.UUID) -> ConversionView:
        """Stop it: at once if it waits, as soon as its worker hears of it if it runs."""
        async with self._database.hot() as connection:
            row = await _mine(connection, owner, job_id)
            if Status(row["status"]) not in (Status.QUEUED, Status.PROCESSING):
                raise Conflict(f"Only what waits or runs can be cancelled; this is {row['status']}.")
            await control.cancel(connection, job_id, "Cancelled by its owner")
        self._changes.changed(owner)
        return await self.get(owner, job_id)

    async def pin(self, owner: str, job_id: uuid.UUID, *, pinned: bool) -> ConversionView:
        """Keep it whatever its age, or no longer."""
        async with self._transaction() as connection:
            row = await _mine(connection, owner, job_id)
            # Locked first: the janitor looks for pins under the same lock.
            await conversions.lock_job(connection, job_id)
            row = await _mine(connection, owner, job_id)
            if pinned and Status(row["status"]) is Status.EXPIRED:
                raise Conflict("It has expired: there is nothing left to keep. Please upload the document again.")
            await conversions.pin(connection, job_id, pinned=pinned)
        self._changes.changed(owner)
        return await self.get(owner, job_id)

    async def delete(self, owner: str, job_id: uuid.UUID) -> None:
        """Remove it with all that is stored of it. What waits never runs then; what runs must be cancelled first."""
        async with self._transaction() as connection:
            row = await _mine(connection, owner, job_id)
            await retention.let_holds_wait(connection)
            await retention.refuse_if_held(connection, row["tenant"])
            if await conversions.lock_job(connection, job_id) == State.RUNNING:
                raise Conflict("It is being converted. Cancel it first.")
            keys = [row["upload_key"], *await conversions.delete(connection, job_id)]
            # What its runs stored and never published goes too, though no row names it, and so do its pages' pictures.
            folders = [f"{artefact_folder(job_id)}/", f"{pages_of(job_id)}/"]
            await garbage.doom(connection, folders)
        self._changes.changed(owner)
        # Rows first: what is left in storage if we die here is garbage, and never a row without its file.
        swept = await garbage.sweep(self._database, self._storage, [*keys, *folders])
        log.info("deleted", job_id=str(job_id), left=len(swept.failed))

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with self._database.hot() as connection, connection.transaction():
            yield connection


_NOT_READY = {
    Status.QUEUED: "The result is not ready yet. Please try again in a moment.",
    Status.PROCESSING: "The result is not ready yet. Please try again in a moment.",
    Status.FAILED: "There is no result: the conversion failed.",
    Status.CANCELLED: "There is no result: the conversion was cancelled.",
}


async def _mine(connection: Connection, owner: str, job_id: uuid.UUID) -> Any:
    row = await conversions.get(connection, job_id)
    if row is None or row["owner"] != owner:
        raise NotFound("There is no such job here.")
    return row
