"""A document comes in: it becomes a job, or it is recognised as one that its owner has already."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from waybill.changes import Event, publish
from waybill.security.principals import PUBLIC, Principal
from waybill.storage import Storage
from waybill.telemetry import spans
from waybill.telemetry.metrics import UPLOAD_BYTES, UPLOADS
from waybill_convert.events import UPLOADED
from waybill_convert.kinds import CONVERT_PDF
from waybill_convert.models import Upload
from waybill_convert.repository import conversions
from waybill_convert.stored_files import remove
from waybill_convert.views import Uploaded
from waybill_engine import JobKind, NewJob, arrivals, enqueue

if TYPE_CHECKING:
    from waybill.changes import Subscriptions
    from waybill.db import Database
    from waybill_convert.outlook import Outlook

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Uploads:
    """The service; one per process."""

    def __init__(
        self,
        database: Database,
        storage: Storage,
        changes: Subscriptions,
        outlook: Outlook,
        *,
        kind: JobKind = CONVERT_PDF,
    ) -> None:
        self._database = database
        self._storage = storage
        self._changes = changes
        self._outlook = outlook
        self._kind = kind

    async def upload(
        self, principal: Principal, upload: Upload, *, force: bool = False, begun_at: datetime | None = None
    ) -> Uploaded:
        """Create a job for a stored PDF, or find the job that the same document has already.

        Conflict if its owner is being erased, or was since `begun_at`, when the document began to arrive.

        The stored object belongs to the job from now on. If there was such a job before, the object is removed.
        """
        with (
            spans.about_job(job_id=upload.job_id, tenant=principal.tenant, kind=self._kind.name),
            spans.span("upload document", attributes={"waybill.bytes": upload.bytes}) as span,
        ):
            uploaded = await self._upload(principal, upload, force, begun_at)
            if uploaded.deduped_from is not None:
                span.set({"job.id": str(uploaded.deduped_from), "waybill.reused": True})
            return uploaded

    async def _upload(self, principal: Principal, upload: Upload, force: bool, begun_at: datetime | None) -> Uploaded:
        async with self._database.hot() as connection, connection.transaction():
            await arrivals.refuse_if_erased(connection, principal.tenant, principal.owner, begun_at)
            existing = None
            if not force:
                await conversions.lock_same(connection, principal.owner, upload)
                existing = await conversions.find_same(connection, principal.owner, upload)
            if existing is not None:
                await conversions.reuse(connection, existing)
            else:
                job = NewJob(
                    self._kind,
                    tenant=principal.tenant,
                    owner=principal.owner,
                    cost=max(1, upload.bytes),
                    payload={
                        "upload_key": upload.key,
                        "mapping": upload.mapping,
                        "mapping_sha256": upload.mapping_sha256,
                        "original_name": upload.original_name,
                        "bytes": upload.bytes,
                        "sha256": upload.sha256,
                        "loss": upload.loss,
                    },
                    id=upload.job_id,
                )
                await enqueue(connection, job)
                await conversions.insert(connection, principal.tenant, principal.owner, upload)
                data = {"original_name": upload.original_name, "mapping": upload.mapping}
                await publish(connection, Event(UPLOADED, principal.tenant, principal.owner, upload.job_id, data))
            row = await conversions.get(connection, existing or upload.job_id)
        if existing is not None:
            await remove(self._storage, [upload.key])
        UPLOADS.labels("created" if existing is None else "reused").inc()
        UPLOAD_BYTES.inc(upload.bytes)
        log.info("uploaded", job_id=str(existing or upload.job_id), bytes=upload.bytes, reused=existing is not None)
        # The upload is committed and must not fail any more, so this uses the cached outlook.
        self._changes.changed(principal.owner)
        return Uploaded(self._outlook.view(row), existing)

    async def adopt(self, session: str, principal: Principal) -> int:
        """Give a tenant what a browser uploaded before it signed in. Returns the number of jobs.

        They stay billed to the tenant that they were queued for: that is decided once. What is being erased stays the
        session's.
        """
        async with self._database.hot() as connection, connection.transaction():
            if await arrivals.is_erased(connection, PUBLIC, session, None):
                return 0
            adopted = await conversions.adopt(connection, session, principal.owner)
        self._changes.changed(session)
        self._changes.changed(principal.owner)
        if adopted:
            log.info("adopted", jobs=adopted, owner=principal.owner)
        return adopted
