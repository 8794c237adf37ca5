"""Reviewing a document: show its record, approve it, or correct it. Each correction makes a new revision.

`review_work` computes the revision, whose files are stored under keys of their own. One statement then makes it the
latest, unless somebody else was faster: in that case the caller is told what changed, and the files are removed.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from waybill.changes import Event, publish
from waybill.errors import Conflict, Expired, NotFound, NotReady, Refused
from waybill.messages import msg
from waybill.storage.keys import dated
from waybill.telemetry.metrics import REVIEWS
from waybill_convert.download_service import StoredFile, in_doubt
from waybill_convert.events import APPROVED, COMPLETED, CORRECTED, files_told
from waybill_convert.kinds import PROVENANCE, XML
from waybill_convert.mapping_catalogue import MappingCatalogue
from waybill_convert.page_images import Document, PageImages
from waybill_convert.repository import approvals, conversions, revisions
from waybill_convert.review_work import Preview, attachments_of, compare, correct, preview
from waybill_convert.revision_models import Difference, Json, Outdated, Revision, Typed
from waybill_convert.status import CONVERTED, Status
from waybill_convert.stored_files import remove

if TYPE_CHECKING:
    from waybill.changes import Subscriptions
    from waybill.db import Database
    from waybill.db.database import Connection
    from waybill.storage import Storage, Stored
    from waybill_convert.review_desk import ReviewDesk
    from waybill_convert.revision_models import Renderer
    from waybill_documents.mapping_files import MappingFiles

log: structlog.stdlib.BoundLogger = structlog.get_logger()

MOST_REVISIONS = 1000
SCALES = (1, 2, 3)
"""Pixels per point that pages can be drawn with. There are few, so that few pictures are stored."""


@dataclass(frozen=True, slots=True)
class _Base:
    """The revision that is about to be corrected."""

    tenant: str
    record: StoredFile
    mapping: MappingFiles | None
    accepted: list[Json] | None


class Reviews:
    """The service; one per process."""

    def __init__(
        self,
        database: Database,
        storage: Storage,
        changes: Subscriptions,
        desk: ReviewDesk,
        renderer: Renderer,
        catalogue: MappingCatalogue | None = None,
    ) -> None:
        self._database = database
        self._storage = storage
        self._changes = changes
        self._desk = desk
        self._pages = PageImages(storage, renderer)
        self._catalogue = catalogue or MappingCatalogue()

    async def close(self) -> None:
        await self._pages.close()

    # Reading

    async def revisions(self, owner: str, job_id: uuid.UUID) -> tuple[int, list[Revision]]:
        """The number of the latest revision, and all revisions that people made, in order."""
        async with self._database.hot() as connection:
            row = await _reviewable(connection, owner, job_id)
            return row["revision"], await revisions.ls(connection, job_id)

    async def file(
        self, owner: str, job_id: uuid.UUID, number: int | None = None, name: str = PROVENANCE
    ) -> StoredFile:
        """A revision's record or XML; by default the latest revision's."""
        async with self._database.hot() as connection:
            row = await _reviewable(connection, owner, job_id)
            wanted = row["revision"] if number is None else number
            if wanted > row["revision"]:
                raise NotFound(msg("convert.review.no_revision", number=wanted))
            return await self._file(connection, row, wanted, name)

    async def mapping(self, owner: str, job_id: uuid.UUID) -> MappingFiles | None:
        """The files of the mapping that the job was converted by; None for a shipped one."""
        async with self._database.hot() as connection:
            return await self._mapping(connection, await _reviewable(connection, owner, job_id))

    async def diff(self, owner: str, job_id: uuid.UUID, before: int, after: int) -> list[Difference]:
        """The values that differ between two revisions."""
        files = [await self.file(owner, job_id, number) for number in (before, after)]
        return await self._desk.work(owner, files, compare)

    async def document(self, owner: str, job_id: uuid.UUID) -> Document:
        """The PDF itself, while it is stored."""

        async def kept() -> bool:
            try:
                await self.document(owner, job_id)
            except Refused:
                return False
            return True

        async with self._database.hot() as connection:
            row = await _reviewable(connection, owner, job_id)
        if row["upload_deleted_at"] is not None:
            raise Expired(msg("convert.document_gone"))
        return Document(job_id, row["tenant"], row["upload_key"], row["bytes"], kept, row["pages"])

    async def has_page(self, document: Document, page: int, scale: int) -> bool:
        """Whether the document certainly has this page. NotFound if it certainly has not."""
        return await self._pages.known(document, page, scale)

    async def page(self, document: Document, page: int, scale: int) -> bytes:
        """A page as PNG, with `scale` pixels per point."""
        if scale not in SCALES:
            raise Refused(msg("convert.review.scale", scales=SCALES))
        return await self._pages.get(document, page, scale)

    async def attachments(self, owner: str, job_id: uuid.UUID, number: int | None = None) -> list[Json]:
        """The files that are embedded in the document, as its record lists them: all, or the one with a number."""
        record = await self.file(owner, job_id, 0)
        return await self._desk.work(owner, [record], attachments_of, number)

    async def attachment(self, owner: str, job_id: uuid.UUID, number: int) -> bytes:
        """One of these files. Only two are taken out at a time, because each may be large."""
        document = await self.document(owner, job_id)
        return await self._pages.attachment(document, number)

    # Correcting

    async def preview(self, owner: str, job_id: uuid.UUID, base: int, typed: Sequence[Typed]) -> Preview:
        """What these corrections would change in the latest revision."""
        found = await self._base(owner, job_id, base, typed)
        return await self._desk.work(owner, [found.record], preview, found.mapping, typed)

    async def check_base(self, owner: str, job_id: uuid.UUID, base: int, typed: Sequence[Typed]) -> None:
        """Outdated if `base` is not the latest revision any more."""
        await self._base(owner, job_id, base, typed)

    async def save(
        self, owner: str, job_id: uuid.UUID, base: int, typed: Sequence[Typed], *, author: str, accept: bool = False
    ) -> Revision:
        """Save these corrections of revision `base` as a new revision. `accept` allows remaining findings.

        Outdated if `base` is not the latest any more, Unfit if a value cannot be read or something is still wrong.
        """
        found = await self._base(owner, job_id, base, typed)
        made = await self._desk.work(owner, [found.record], correct, found.mapping, typed, found.accepted, accept)
        number = base + 1
        stem = f"{dated('results', job_id)}/r{number}-{secrets.token_hex(4)}"
        stored = await self._store(stem, made.xml, made.record)
        # If this transaction is interrupted, the files stay: it may have been committed, and then it names them.
        async with self._database.hot() as connection, connection.transaction():
            saved = await revisions.save(
                connection,
                job_id,
                owner,
                number,
                author=author,
                changes=made.changes,
                accepted=made.findings,
                xml=stored[0],
                record=stored[1],
            )
            if saved is not None:
                told = {"revision": number, "amounts": made.amounts, "files": files_told(stored[1], stored[0])}
                await publish(connection, Event(CORRECTED, found.tenant, owner, job_id, told))
                approved = await _approve(connection, owner, job_id, number, author)
        if saved is None:
            await remove(self._storage, [each.key for each in stored])
            await self._base(owner, job_id, base, typed)
            raise Conflict()
        self._changes.changed(owner)
        if approved:
            REVIEWS.labels("corrected").inc()
        log.info("corrected", job_id=str(job_id), revision=number, changes=len(saved.changes))
        return saved

    async def approve(self, owner: str, job_id: uuid.UUID, base: int, *, author: str) -> None:
        """Say that revision `base` is right although values in it are in doubt. Done twice, nothing changes again.

        Outdated if `base` is not the latest any more, Conflict if there is nothing to approve.
        """
        async with self._database.hot() as connection, connection.transaction():
            await _reviewable(connection, owner, job_id)
            if not await _approve(connection, owner, job_id, base, author):
                row = await _reviewable(connection, owner, job_id)
                await _since(connection, row, base, ())
                if Status(row["status"]) is not Status.COMPLETE:
                    raise Conflict(msg("convert.review.approve_only", status=row["status"]))
                return  # it has been approved already, or nothing was in doubt
        REVIEWS.labels("approved").inc()
        self._changes.changed(owner)
        log.info("approved", job_id=str(job_id), revision=base)

    async def _base(self, owner: str, job_id: uuid.UUID, base: int, typed: Sequence[Typed]) -> _Base:
        """The revision to be corrected. Outdated if there are later ones."""
        async with self._database.hot() as connection:
            row = await _reviewable(connection, owner, job_id)
            if base >= MOST_REVISIONS:
                raise Refused(msg("convert.review.too_many_revisions", number=MOST_REVISIONS))
            made = await _since(connection, row, base, typed)
            record = await self._file(connection, row, base, PROVENANCE)
            mapping = await self._mapping(connection, row)
            return _Base(row["tenant"], record, mapping, made[0].accepted if made else None)

    async def _store(self, stem: str, xml: bytes, record: bytes) -> tuple[Stored, Stored]:
        try:
            return await self._storage.put(f"{stem}.xml", xml), await self._storage.put(f"{stem}.json", record)
        except BaseException:
            await remove(self._storage, [f"{stem}.xml", f"{stem}.json"])
            raise

    # Files

    async def _mapping(self, connection: Connection, row: Any) -> MappingFiles | None:
        named = await conversions.used_mapping(connection, row["job_id"])
        assert named is not None, "the caller has just read its row"  # noqa: S101
        return await self._catalogue.files(connection, named.tenant, named.name, named.sha256)

    async def _file(self, connection: Connection, row: Any, number: int, name: str) -> StoredFile:
        found = await revisions.file(connection, row["job_id"], number, name)
        if name == XML and Status(row["status"]) is Status.NEEDS_REVIEW:
            raise in_doubt(row["job_id"])
        if found is None and Status(row["status"]) in CONVERTED and number == row["revision"]:
            raise Expired()
        if found is None:
            raise NotFound(_NO_XML if name == XML else _NO_RECORD)
        return StoredFile(row["job_id"], row["original_name"], *found)


async def _since(connection: Connection, row: Any, base: int, typed: Sequence[Typed]) -> list[Revision]:
    """Revision `base`, if it is not what was read. Outdated if there are later ones."""
    if base > row["revision"]:
        raise Refused(msg("convert.review.no_revision_yet", number=base, latest=row["revision"]))
    made = await revisions.ls(connection, row["job_id"], after=base - 1)
    later = [revision for revision in made if revision.number > base]
    if later:
        theirs = {change["path"] for revision in later for change in revision.changes}
        raise Outdated.by(later[-1], [path for path in dict.fromkeys(path for path, _ in typed) if path in theirs])
    return made


async def _approve(connection: Connection, owner: str, job_id: uuid.UUID, number: int, author: str) -> bool:
    """Approve a result that waits for a person, and tell the other pipelines. False if it does not wait."""
    approved = await approvals.approve(connection, job_id, owner, number, author=author)
    if approved is None:
        return False
    for name, data in ((APPROVED, {"revision": number, "by": author}), (COMPLETED, {"pages": approved.pages})):
        await publish(connection, Event(name, approved.tenant, owner, job_id, data))
    return True


_NO_XML = msg("convert.review.no_xml")
_NO_RECORD = msg("convert.review.no_record")
_NOT_READY = {
    Status.QUEUED: msg("convert.review.not_converted"),
    Status.PROCESSING: msg("convert.review.not_converted"),
    Status.CANCELLED: msg("convert.review.cancelled"),
}


async def _reviewable(connection: Connection, owner: str, job_id: uuid.UUID) -> Any:
    """The owner's conversion, if it has ended with something to review."""
    row = await conversions.get_own(connection, owner, job_id)
    if row is None:
        raise NotFound(msg("convert.no_job"))
    status = Status(row["status"])
    if status is Status.EXPIRED:
        raise Expired()
    if status in _NOT_READY:
        raise NotReady(_NOT_READY[status])
    return row
