"""The samples of a tenant's mappings: documents that each is tested with, and the data that must be read from them.

Any document may be one that the mapping reads. It is converted by the gateway, as an upload would be.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill.errors import Conflict, NotFound, NotPdf, Refused
from waybill.gateway_client.source import Source
from waybill.ids import new_id
from waybill.messages import msg
from waybill.security.principals import owner_of_tenant
from waybill.storage.keys import dated
from waybill.web.fair_places import FairPlaces
from waybill_convert import mapping_guards as guards
from waybill_convert.clients.answers import Rejected
from waybill_convert.mapping_catalogue import MappingChoice, MappingOrigin
from waybill_convert.mapping_models import MappingSample, SampleResult, TenantMapping, WholeMapping
from waybill_convert.mapping_work import compare_data
from waybill_convert.repository import mappings
from waybill_convert.stored_files import remove
from waybill_convert.upload_contents import suffix_of_kind, unread_by

if TYPE_CHECKING:
    from waybill.db import Database
    from waybill.files import FileType
    from waybill.storage import Storage
    from waybill_convert.clients.gateway import Gateway
    from waybill_convert.review_desk import ReviewDesk
    from waybill_convert.sample_form import SampleForm

MOST_SAMPLES = 20
MOST_SAMPLES_OF_TENANT = 200
MOST_SAMPLE_MB = 10
_AT_ONCE = 3
"""Samples that are at the gateway at once, in turn between tenants; one tenant never has all places."""


class MappingSamples:
    """The service; one per API process."""

    def __init__(self, database: Database, storage: Storage, desk: ReviewDesk, gateway: Gateway) -> None:
        self._database = database
        self._storage = storage
        self._desk = desk
        self._gateway = gateway
        self._places = FairPlaces(_AT_ONCE, waiting_per_owner=MOST_SAMPLES, waiting=10 * MOST_SAMPLES)

    async def begin(self, tenant: str) -> datetime | None:
        """When something began to arrive, for `add`. Conflict while the tenant is being erased."""
        async with self._database.hot() as connection:
            return await guards.begin(connection, tenant)

    async def add(
        self, tenant: str, mapping: str, form: SampleForm, *, begun_at: datetime | None = None
    ) -> MappingSample:
        """Keep a document with a mapping, and the data that must be read from it, in place of one of the same name.

        NotPdf if the mapping reads no documents of this kind. Conflict if its tenant is being erased, or was since
        `begun_at`, when the document began to arrive.
        """
        async with self._database.hot() as connection:
            _refuse_unread(await guards.known(connection, tenant, mapping), form.kind)
        sample_id, name, expected = new_id(), form.name, form.expected
        key = f"{dated('samples', sample_id)}{suffix_of_kind(form.kind)}"
        try:
            stored = await self._storage.put(key, form.document)
            async with self._database.hot() as connection, connection.transaction():
                await guards.let_go(connection, tenant)
                await guards.admit(connection, tenant, begun_at)
                await mappings.lock_name(connection, tenant, mapping)
                _refuse_unread(await guards.known(connection, tenant, mapping), form.kind)
                of_mapping, of_tenant = await mappings.count_samples(connection, tenant, mapping, name)
                if of_mapping >= MOST_SAMPLES or of_tenant >= MOST_SAMPLES_OF_TENANT:
                    limits = {"number": MOST_SAMPLES, "together": MOST_SAMPLES_OF_TENANT}
                    raise Conflict(msg("convert.mapping.too_many_samples", **limits))
                created_at = await mappings.add_sample(
                    connection, tenant, mapping, sample_id, name, key, stored.bytes, stored.sha256, expected
                )
                await guards.record(connection, "mapping.sample_added", tenant, mapping, {"sample": str(sample_id)})
        except (Refused, NotFound, NotPdf):
            # It was raised before anything was written. After any other error, the row may be there.
            await remove(self._storage, [key])
            raise
        return MappingSample(sample_id, name, key, stored.bytes, stored.sha256, expected, created_at)

    async def remove(self, tenant: str, mapping: str, sample_id: Any) -> None:
        async with self._database.hot() as connection, connection.transaction():
            await guards.let_go(connection, tenant)
            await guards.known(connection, tenant, mapping)
            if not await mappings.remove_sample(connection, tenant, mapping, sample_id):
                raise NotFound(msg("convert.mapping.no_sample"))
            await guards.record(connection, "mapping.sample_removed", tenant, mapping, {"sample": str(sample_id)})

    async def run(self, tenant: str, tested: WholeMapping) -> list[SampleResult]:
        """Convert all samples with a mapping as it is now, and compare."""

        async def run(sample: MappingSample) -> SampleResult:
            async with self._places.take(owner_of_tenant(tenant)):
                return await self._result(tenant, tested, sample)

        running = [asyncio.create_task(run(sample)) for sample in tested.samples]
        try:
            return list(await asyncio.gather(*running))
        finally:
            for task in running:
                task.cancel()

    async def _result(self, tenant: str, tested: WholeMapping, sample: MappingSample) -> SampleResult:
        source = Source(self._storage.stream(sample.storage_key), sample.bytes, sample.sha256)
        work = functools.partial(self._work, tenant)
        try:
            made = await self._gateway.convert(
                source, mapping=tested.mapping.name, files=tested.files, job_id=str(sample.id), apart=work
            )
        except Rejected as rejected:
            found = (rejected.detail or {}).get("findings") or [{"message": rejected.message}]
            return SampleResult(sample, list(found), [])
        except NotFound:
            return SampleResult(sample, [{"message": str(msg("convert.mapping.sample_gone"))}], [])
        if sample.expected is None:
            return SampleResult(sample, [], [])
        return SampleResult(sample, [], await work(compare_data, made.provenance, sample.expected))

    async def _work(self, tenant: str, function: Callable[..., Any], *arguments: object) -> Any:
        return await self._desk.work(owner_of_tenant(tenant), [], function, *arguments)


def _refuse_unread(mapping: TenantMapping, kind: FileType) -> None:
    """Refuse a document that this mapping can never read, as an upload of it is refused."""
    choice = MappingChoice(mapping.name, mapping.title, mapping.sha256, MappingOrigin.OWN, mapping.embedded)
    if (refusal := unread_by(choice, kind)) is not None:
        raise refusal
