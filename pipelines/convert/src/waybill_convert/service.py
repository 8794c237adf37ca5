"""What an owner can do with conversions between upload and download: list, explain, retry, cancel, pin, delete.

Somebody else's job is answered like one that does not exist.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import structlog

from waybill import audit, garbage, retention
from waybill.db import driver
from waybill.errors import BadMapping, Conflict, Expired, NotFound
from waybill.messages import msg
from waybill.security import ADMIN
from waybill.storage import Storage
from waybill.telemetry.trace_links import NO_LINKS, TraceLinks
from waybill_convert.counts import Counts
from waybill_convert.cursors import ListPosition, Since, parse_since
from waybill_convert.mapping_catalogue import MappingCatalogue
from waybill_convert.outlook import Outlook
from waybill_convert.pinned_catalogues import AutoChoice
from waybill_convert.repository import conversions, listing
from waybill_convert.status import Status
from waybill_convert.stored_files import pages_of
from waybill_convert.upload_contents import kind_of_stored, unread_by
from waybill_convert.views import ConversionView, EverybodysListing, Listing, OwnedView, source_kept
from waybill_documents.catalogue import AUTO
from waybill_engine import control, queries
from waybill_engine.artefacts import artefact_folder
from waybill_engine.explain import Explanation, explain
from waybill_engine.models import State
from waybill_engine.queries import Happening

if TYPE_CHECKING:
    from waybill.changes import Subscriptions
    from waybill.db import Database
    from waybill.db.database import Connection
    from waybill.files import FileType
    from waybill.security import Principal
    from waybill_convert.mapping_catalogue import MappingChoice
    from waybill_convert.models import Upload

log: structlog.stdlib.BoundLogger = structlog.get_logger()

MOST_LISTED = 500


class Conversions:
    """The service; one per process."""

    def __init__(
        self,
        database: Database,
        storage: Storage,
        changes: Subscriptions,
        trace_links: TraceLinks = NO_LINKS,
        catalogue: MappingCatalogue | None = None,
    ) -> None:
        self._database = database
        self._storage = storage
        self._changes = changes
        self._catalogue = catalogue or MappingCatalogue()
        self.outlook = Outlook(database, changes, trace_links)
        """Shared with `Uploads`, so that both tell an owner the same."""
        self._counts = Counts(changes)

    # Reading

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
        after = ListPosition.parse(cursor) if cursor else None
        await self.outlook.refresh()
        async with self._database.hot() as connection:
            oldest, counts = await self._counts.look(connection, owner)
            rows = await listing.page(connection, owner, statuses=statuses, words=words, after=after, limit=limit + 1)
        more, rows = len(rows) > limit, rows[:limit]
        last = str(ListPosition(rows[-1]["listed_at"], rows[-1]["job_id"])) if more else None
        return Listing([self.outlook.view(row) for row in rows], last, str(Since(oldest)), counts, self.outlook.pause)

    async def changes_since(self, owner: str, since: str, *, limit: int = MOST_LISTED) -> Listing:
        """The owner's changes since a cursor. If `next` is set, there are more: ask again with it as `since`."""
        asked = parse_since(since)
        await self.outlook.refresh()
        async with self._database.hot() as connection:
            oldest, counts = await self._counts.look(connection, owner)
            if isinstance(asked, datetime):
                first = await listing.first_since(connection, owner, asked)
                asked = Since(first or oldest)
            begun = asked.floor if asked.floor is not None else asked.xid
            if begun > oldest:  # it comes from the future, because the database was restored from a backup
                asked = Since(0)
            asked = Since(asked.xid, oldest if asked.floor is None else asked.floor, asked.after)
            rows, gone, more = await listing.changed(connection, owner, asked, limit)
        if not rows and not gone and asked.after is None:
            # Nothing has changed. Keep the old cursor, so that the next request hits the cache.
            return Listing([], None, str(Since(asked.xid)), counts, self.outlook.pause)
        jobs = [self.outlook.view(row) for row in rows]
        return Listing(
            jobs, str(more) if more else None, str(Since(asked.floor or 0)), counts, self.outlook.pause, gone
        )

    async def get(self, owner: str, job_id: uuid.UUID) -> ConversionView:
        await self.outlook.refresh()
        async with self._database.hot() as connection:
            return self.outlook.view(await _mine(connection, owner, job_id))

    async def events(self, owner: str, job_id: uuid.UUID) -> list[Happening]:
        async with self._database.transaction() as session:
            await _mine(await driver(session), owner, job_id)
            return await queries.history(session, await queries.get_job(session, job_id))

    async def explain(self, owner: str, job_id: uuid.UUID) -> Explanation:
        async with self._database.hot() as connection:
            row = await _mine(connection, owner, job_id)
            found = await explain(connection, job_id)
        if Status(row["status"]) is Status.NEEDS_REVIEW:
            return replace(found, says=msg("convert.waits_for_review"))
        return found

    # Reading as an admin

    async def owner_to_read(self, principal: Principal, job_id: uuid.UUID) -> str:
        """The owner as whom somebody reads a job. An admin reads everybody's, and leaves an event with each look."""
        if not principal.may(ADMIN):
            return principal.owner
        async with self._database.hot() as connection:
            row = await conversions.get(connection, job_id)
            if row is None or row["owner"] == principal.owner:
                return principal.owner
            detail = {"owner": row["owner"]}
            await audit.record(connection, "job.looked_at", f"job:{job_id}", tenant=row["tenant"], detail=detail)
        return str(row["owner"])

    async def everybodys(
        self, *, tenant: str | None, statuses: Sequence[Status], before: uuid.UUID | None, limit: int
    ) -> EverybodysListing:
        """The conversions of all tenants, or of one, newest first. The look is recorded."""
        await self.outlook.refresh()
        async with self._database.hot() as connection:
            rows, following = await listing.everybodys(
                connection, tenant=tenant, statuses=statuses, before=before, limit=limit
            )
            await audit.record(connection, "jobs.listed", "jobs", tenant=tenant, detail={"jobs": len(rows)})
        seen = [OwnedView(self.outlook.view(row), row["tenant"], row["owner"]) for row in rows]
        return EverybodysListing(seen, following)

    # Changing

    async def retry(
        self, owner: str, job_id: uuid.UUID, mapping: str | None = None, loss: str | None = None
    ) -> ConversionView:
        """Convert a failed or cancelled document again, if it is still stored; with `mapping`, by another one.

        Without it, `auto` chooses among the same mappings as before; with `auto`, among those that there are now.
        BadMapping if there is none of that name, or if there is nothing that it could lose; NotPdf if it cannot read
        the document. Conflict, with the other job's id, if the same document is being converted in another job or was
        in a later one.
        """
        async with self._database.hot() as connection:
            row = await _mine(connection, owner, job_id)
        if Status(row["status"]) not in (Status.FAILED, Status.CANCELLED):
            raise Conflict(msg("convert.retry_only", status=row["status"]))
        # The storage may be slow, so no connection is kept while we ask it.
        if not source_kept(row) or not await self._storage.exists(row["upload_key"]):
            raise Expired(msg("convert.document_gone"))
        kind = await self._kind(row["upload_key"]) if mapping is not None else None
        async with self._transaction() as connection:
            # Uploads take the same lock: one of the same document comes before this, or finds the job we queue.
            document = await conversions.document(connection, job_id)
            if document is None:
                raise NotFound(msg("convert.no_job"))
            if mapping is not None or loss is not None:
                document = await self._asked_anew(connection, row["tenant"], document, mapping, loss, kind)
            await conversions.lock_same(connection, owner, document)
            # What is in no list is converted for the family it belongs to, whatever else its owner has.
            twin = await conversions.find_twin(connection, owner, document) if row["listed"] else None
            if twin is not None:
                raise Conflict(msg("convert.uploaded_again"), detail={"job_id": str(twin)})
            if mapping is not None or loss is not None:
                await conversions.ask_anew(connection, document)
            await control.retry(connection, job_id, "Retried by its owner")
        self._changes.changed(owner)
        return await self.get(owner, job_id)

    async def _kind(self, key: str) -> FileType:
        async with aclosing(cast("Any", self._storage.stream(key))) as chunks:
            return await kind_of_stored(chunks)

    async def _asked_anew(
        self,
        connection: Connection,
        tenant: str,
        document: Upload,
        name: str | None,
        loss: str | None,
        kind: FileType | None,
    ) -> Upload:
        """The document with another mapping, as it is now, or with another choice of what may be lost."""
        choices = await self._catalogue.choices(connection, tenant)
        if name is None:
            # Of a version that cannot be chosen any more, only the gateway knows what it reads.
            if (same := choices.get(document.mapping)) is not None and same.sha256 == document.mapping_sha256:
                same.check_loss(loss)
            return replace(document, loss=loss)
        if name == AUTO:
            choice: MappingChoice = AutoChoice.among(choices.values())
        elif name in choices:
            choice = choices[name]
        else:
            raise BadMapping(msg("convert.upload.no_mapping", name=name[:100], names=sorted(choices)))
        choice.check_loss(loss)
        if kind is not None and (refusal := unread_by(choice, kind)) is not None:
            raise refusal
        if isinstance(choice, AutoChoice):
            await choice.pin(connection)
        # What was asked for before still holds, unless there is nothing to lose any more.
        loss = loss or (document.loss if choice.embedded is not False else None)
        return replace(document, mapping=choice.name, mapping_sha256=choice.sha256, loss=loss)

    async def cancel(self, owner: str, job_id: uuid.UUID) -> ConversionView:
        """Stop a job: at once if it waits, or as soon as its worker is notified if it runs."""
        async with self._database.hot() as connection:
            row = await _mine(connection, owner, job_id)
            if Status(row["status"]) not in (Status.QUEUED, Status.PROCESSING):
                raise Conflict(msg("convert.cancel_only", status=row["status"]))
            await control.cancel(connection, job_id, "Cancelled by its owner")
        self._changes.changed(owner)
        return await self.get(owner, job_id)

    async def pin(self, owner: str, job_id: uuid.UUID, *, pinned: bool) -> ConversionView:
        """Keep a job whatever its age, or stop doing so."""
        async with self._transaction() as connection:
            row = await _mine(connection, owner, job_id)
            # The janitor looks for pins under the same lock.
            await control.lock(connection, job_id)
            row = await _mine(connection, owner, job_id)
            if pinned and Status(row["status"]) is Status.EXPIRED:
                raise Conflict(msg("convert.pin_expired"))
            await conversions.pin(connection, job_id, pinned=pinned)
        self._changes.changed(owner)
        return await self.get(owner, job_id)

    async def delete(self, owner: str, job_id: uuid.UUID) -> None:
        """Remove a job and all its files. A waiting job never runs then; a running one must be cancelled first."""
        async with self._transaction() as connection:
            row = await _mine(connection, owner, job_id)
            await retention.let_holds_wait(connection)
            await retention.refuse_if_held(connection, row["tenant"])
            if await control.lock(connection, job_id) == State.RUNNING:
                raise Conflict(msg("convert.cancel_first"))
            await audit.record(connection, "job.deleted", f"job:{job_id}", tenant=row["tenant"])
            keys = await conversions.delete(connection, job_id)
            if not row["upload_borrowed"]:
                keys.append(row["upload_key"])
            # Files that its runs stored but never published, and pictures of pages: no row names them.
            folders = [f"{artefact_folder(job_id)}/", f"{pages_of(job_id)}/"]
            await garbage.doom(connection, folders)
        self._changes.changed(owner)
        # Rows go first: if we crash here, files without a row are left, and never a row without its file.
        swept = await garbage.sweep(self._database, self._storage, [*keys, *folders])
        log.info("deleted", job_id=str(job_id), left=len(swept.failed))

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with self._database.hot() as connection, connection.transaction():
            yield connection


async def _mine(connection: Connection, owner: str, job_id: uuid.UUID) -> Any:
    row = await conversions.get_own(connection, owner, job_id)
    if row is None:
        raise NotFound(msg("convert.no_job"))
    return row
