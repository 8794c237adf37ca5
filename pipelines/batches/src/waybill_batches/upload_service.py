"""A ZIP comes in: it becomes a batch, or it is recognised as one that its owner has already."""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import structlog

from waybill import idempotency
from waybill.changes import Event, publish
from waybill.security import Principal
from waybill.storage import Storage
from waybill_batches.events import RECEIVED
from waybill_batches.kinds import CONVERT_PDF, PROCESS_BATCH, SUMMARIZE_RUN
from waybill_batches.models import ReceivedZip
from waybill_batches.repository import batches
from waybill_batches.status import REUSABLE
from waybill_batches.upload_form import BatchForm
from waybill_engine import NewJob, arrivals, enqueue_family, kind_named

if TYPE_CHECKING:
    from waybill.db import Database
    from waybill.db.database import Connection

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Received(NamedTuple):
    batch_id: uuid.UUID
    new: bool


class BatchUploads:
    """The service; one per process."""

    def __init__(self, database: Database, storage: Storage) -> None:
        self._database = database
        self._storage = storage

    async def receive(self, principal: Principal, form: BatchForm, key: str | None, begun_at: datetime) -> Received:
        """Make a batch of a stored ZIP, or find the one that the same request has already.

        With an idempotency key, the same request is answered with the same batch. The stored object belongs to the
        batch from now on; if there was such a batch before, the object is removed.
        """
        print_of = fingerprint(form)
        async with self._database.hot() as connection, connection.transaction():
            await arrivals.refuse_if_erased(connection, principal.tenant, principal.owner, begun_at)
            same = await self._known(connection, principal.owner, form, print_of)
            held, answered = await self._hold(connection, principal, form, key, print_of)
            same = answered or same
            if same is None:
                await self._make(connection, principal, form, print_of)
            if held is not None:
                await idempotency.finish(connection, held, str(same or form.zip.batch_id))
        if same is not None:
            await self._remove(form.zip)
        return Received(same or form.zip.batch_id, new=same is None)

    async def _known(self, connection: Connection, owner: str, form: BatchForm, print_of: str) -> uuid.UUID | None:
        return None if form.force else await batches.find_same(connection, owner, print_of)

    async def _hold(
        self, connection: Connection, principal: Principal, form: BatchForm, key: str | None, print_of: str
    ) -> tuple[idempotency.KeyRecord | None, uuid.UUID | None]:
        """The idempotency key, if it is ours to answer, or what it was answered with and is still good."""
        if key is None:
            return None, None
        while True:
            begun = await idempotency.begin(
                connection,
                tenant=principal.tenant,
                key=_scoped(principal.owner, key),
                fingerprint=idempotency.fingerprint(print_of, form.name),
            )
            if begun.held:
                return begun.record, None
            if (good := await _still_good(connection, principal.owner, begun.record.answer)) is not None:
                return None, good
            await idempotency.forget(connection, begun.record)

    async def _make(self, connection: Connection, principal: Principal, form: BatchForm, print_of: str) -> None:
        batch_id = form.zip.batch_id
        await batches.insert(
            connection,
            principal,
            form.zip,
            name=form.name,
            rules=form.rules,
            wanted=form.wanted.schema if form.wanted is not None else None,
            fingerprint=print_of,
        )
        payload = {"batch": str(batch_id)}
        await enqueue_family(
            connection,
            NewJob(SUMMARIZE_RUN, principal.tenant, payload, owner=principal.owner, id=batch_id),
            [
                NewJob(
                    kind_named(PROCESS_BATCH.name),
                    principal.tenant,
                    payload,
                    owner=principal.owner,
                    cost=max(form.zip.bytes, 1),
                )
            ],
        )
        await publish(connection, Event(RECEIVED, principal.tenant, principal.owner, batch_id, {"name": form.name}))

    async def _remove(self, received: ReceivedZip) -> None:
        try:
            await self._storage.delete(received.key)
        except Exception as error:  # noqa: BLE001 - the janitor finds what no row names
            log.warning("not_removed", key=received.key, error=str(error))


def fingerprint(form: BatchForm) -> str:
    """What is wanted: the ZIP, and what is to be done with its files. The name makes no difference."""
    wanted = form.wanted.schema if form.wanted is not None else None
    text = json.dumps([form.zip.sha256, form.zip.bytes, form.rules.as_json(), wanted], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


async def check_mappings(connection: Connection, tenant: str, form: BatchForm) -> None:
    """Raises what the pipeline that converts files raises for a mapping that it would refuse later."""
    accepts = kind_named(CONVERT_PDF).accepts if form.rules.mappings else None
    if accepts is not None:
        for mapping in sorted(form.rules.mappings):
            await accepts(connection, tenant, {"mapping": mapping})


def _scoped(owner: str, key: str) -> str:
    """Browsers share a tenant, and must not share keys. Keys are for programs, so a long one may become its hash."""
    return f"batch {hashlib.sha256(f'{owner} {key}'.encode()).hexdigest()}"


async def _still_good(connection: Connection, owner: str, answer: object) -> uuid.UUID | None:
    """The batch that an earlier request with the key was answered with, if it is still good for it."""
    if not isinstance(answer, str):
        return None
    batch = await batches.to_work(connection, uuid.UUID(answer))
    return batch.id if batch is not None and batch.owner == owner and batch.status in REUSABLE else None
