"""A tenant's own mappings: draft, test against samples, publish, retire.

`tenant` is whose mapping it is: a tenant's, or SHARED. Who may act for it is checked by the routes. A published mapping
never changes, because jobs name it by its hash; a trigger sees to that.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog

from waybill import audit
from waybill.errors import BadMapping, Conflict, NotFound, Refused
from waybill.gateway_client.source import Source
from waybill.ids import new_id
from waybill.messages import msg
from waybill.retention import let_holds_wait
from waybill.retention.holds import refuse_if_held
from waybill.security.principals import owner_of_tenant
from waybill.storage.keys import dated
from waybill.web.fair_places import FairPlaces
from waybill.web.side_processes import WorkDied
from waybill_convert.clients.answers import Rejected
from waybill_convert.mapping_models import (
    SHARED,
    InvalidMapping,
    MappingSample,
    MappingState,
    SampleResult,
    SamplesFail,
    TenantMapping,
    WholeMapping,
)
from waybill_convert.mapping_work import CheckedMapping, check_mapping, compare_data
from waybill_convert.repository import mappings
from waybill_convert.stored_files import remove
from waybill_engine import arrivals

if TYPE_CHECKING:
    from waybill.db import Database
    from waybill.db.database import Connection
    from waybill.storage import Storage
    from waybill_convert.clients.gateway import Gateway
    from waybill_convert.mapping_catalogue import MappingCatalogue
    from waybill_convert.review_desk import ReviewDesk
    from waybill_convert.revision_models import Json
    from waybill_documents.mapping_files import MappingFiles

log: structlog.stdlib.BoundLogger = structlog.get_logger()

MOST_MAPPINGS = 100
"""Drafts and published mappings of a tenant, and as many that are shared. With the shipped ones, they are less than the
300 that the gateway takes with a document."""
MOST_MAPPING_BYTES = 1024 * 1024
"""Bytes of one mapping with its schemas."""
MOST_BYTES = 3 * 512 * 1024
"""Bytes of all that a tenant has in use, so that all it can choose from may be sent together (4 MB)."""
MOST_SAMPLES = 20
MOST_SAMPLES_OF_TENANT = 200
MOST_SAMPLE_MB = 10
_COMPILED_WITHIN = 60.0
"""Seconds, on however busy a machine; `mapping_work` limits the processor time."""
_AT_ONCE = 3
"""Samples that are at the gateway at once, in turn between tenants; one tenant never has all places."""

_VERSIONED = re.compile(r"[a-z][a-z0-9_]{0,57}_v[1-9][0-9]{0,3}")


class TenantMappings:
    """The service; one per API process."""

    def __init__(
        self, database: Database, storage: Storage, catalogue: MappingCatalogue, desk: ReviewDesk, gateway: Gateway
    ) -> None:
        self._database = database
        self._storage = storage
        self._catalogue = catalogue
        self._desk = desk
        self._gateway = gateway
        self._places = FairPlaces(_AT_ONCE, waiting_per_owner=MOST_SAMPLES, waiting=10 * MOST_SAMPLES)

    # Reading

    async def ls(self, tenant: str) -> list[TenantMapping]:
        """The tenant's own in every state, and those that are shared with it, drafts left out."""
        async with self._database.hot() as connection:
            found = await mappings.ls(connection, tenant)
        return [each for each in found if each.tenant == tenant or each.state is not MappingState.DRAFT]

    async def get(self, tenant: str, name: str) -> WholeMapping:
        """One with its text and samples: the tenant's own, or a shared one, whose samples are the operator's."""
        async with self._database.hot() as connection:
            if (own := await mappings.whole(connection, tenant, name)) is not None:
                return own
            shared = await mappings.whole(connection, SHARED, name)
        if shared is None or shared.mapping.state is MappingState.DRAFT:
            raise _none()
        return WholeMapping(shared.mapping, shared.files, [])

    # Changing

    async def push(self, tenant: str, files: MappingFiles, *, author: str, name: str | None = None) -> WholeMapping:
        """Make a draft, or with a name replace it. Conflict if the name is taken, or if what has it is published."""
        if files.size > MOST_MAPPING_BYTES:
            raise Refused(msg("convert.mapping.too_large", kilobytes=MOST_MAPPING_BYTES // 1024))
        checked = await self._checked(tenant, files)
        if not _VERSIONED.fullmatch(checked.name):
            raise Refused(msg("convert.mapping.unversioned", name=checked.name))
        if name is not None and name != checked.name:
            raise Refused(msg("convert.mapping.other_name", name=name, other=checked.name))
        if checked.name in self._catalogue.installed:
            raise Conflict(msg("convert.mapping.name_taken", name=checked.name))
        async with self._database.hot() as connection, connection.transaction():
            await self._admit(connection, tenant)
            await mappings.lock_name(connection, tenant, checked.name)
            if await mappings.is_taken(connection, tenant, checked.name):
                raise Conflict(msg("convert.mapping.name_taken", name=checked.name))
            before = await mappings.get(connection, tenant, checked.name)
            if before is not None and name is None:
                raise Conflict(msg("convert.mapping.exists", name=checked.name))
            count, size = await mappings.used(connection, tenant, checked.name)
            if count >= MOST_MAPPINGS or size + files.size > MOST_BYTES:
                raise Conflict(msg("convert.mapping.too_many", number=MOST_MAPPINGS, kilobytes=MOST_BYTES // 1024))
            if not await mappings.put(connection, tenant, checked.name, checked.title, files, author):
                raise Conflict(msg("convert.mapping.published", name=checked.name))
            await _record(connection, "mapping.pushed", tenant, checked.name, {"sha256": files.sha256})
            found = await mappings.whole(connection, tenant, checked.name)
        assert found is not None, "it has just been stored"  # noqa: S101
        return found

    async def delete(self, tenant: str, name: str) -> None:
        """Delete a draft. What is published is named by jobs, so it can only be retired."""
        async with self._database.hot() as connection, connection.transaction():
            await self._let_go(connection, tenant)
            await _known(connection, tenant, name)
            if not await mappings.delete(connection, tenant, name):
                raise Conflict(msg("convert.mapping.published", name=name))
            await _record(connection, "mapping.deleted", tenant, name)

    async def retire(self, tenant: str, name: str) -> WholeMapping:
        """Hide a published mapping from new uploads. Jobs that named it go on with it. Done twice, nothing changes."""
        async with self._database.hot() as connection, connection.transaction():
            before = await _known(connection, tenant, name)
            if before.state is MappingState.DRAFT:
                raise Conflict(msg("convert.mapping.draft", name=name))
            if await mappings.retire(connection, tenant, name):
                await _record(connection, "mapping.retired", tenant, name, {"sha256": before.sha256})
        return await self.get(tenant, name)

    async def publish(self, tenant: str, name: str) -> tuple[WholeMapping, list[SampleResult]]:
        """Publish a draft whose samples all pass. SamplesFail if one does not; one without samples may be published."""
        tested = await self.get(tenant, name)
        if tested.mapping.tenant != tenant:
            raise _none()
        if tested.mapping.state is not MappingState.DRAFT:
            raise Conflict(msg("convert.mapping.published", name=name))
        if not (await self._checked(tenant, tested.files)).writes_xml:
            raise BadMapping(msg("convert.mapping.no_xml", name=name))
        results = await self._run(tenant, tested)
        if not all(result.passed for result in results):
            raise SamplesFail.of(results)
        async with self._database.hot() as connection, connection.transaction():
            if not await mappings.publish(connection, tenant, name, tested.mapping.changed_at):
                raise Conflict(msg("convert.mapping.changed_meanwhile", name=name))
            detail = {"sha256": tested.mapping.sha256, "samples": len(results)}
            await _record(connection, "mapping.published", tenant, name, detail)
        return await self.get(tenant, name), results

    # Samples

    async def add_sample(
        self, tenant: str, mapping: str, name: str, document: bytes, expected: Json | None
    ) -> MappingSample:
        """Keep a document with a mapping, and the data that must be read from it, in place of one of the same name."""
        async with self._database.hot() as connection:
            await _known(connection, tenant, mapping)
        sample_id = new_id()
        key = f"{dated('samples', sample_id)}.pdf"
        try:
            stored = await self._storage.put(key, document)
            async with self._database.hot() as connection, connection.transaction():
                await self._let_go(connection, tenant)
                await self._admit(connection, tenant)
                await mappings.lock_name(connection, tenant, mapping)
                await _known(connection, tenant, mapping)
                of_mapping, of_tenant = await mappings.count_samples(connection, tenant, mapping, name)
                if of_mapping >= MOST_SAMPLES or of_tenant >= MOST_SAMPLES_OF_TENANT:
                    limits = {"number": MOST_SAMPLES, "together": MOST_SAMPLES_OF_TENANT}
                    raise Conflict(msg("convert.mapping.too_many_samples", **limits))
                created_at = await mappings.add_sample(
                    connection, tenant, mapping, sample_id, name, key, stored.bytes, stored.sha256, expected
                )
                await _record(connection, "mapping.sample_added", tenant, mapping, {"sample": str(sample_id)})
        except Refused:  # raised before anything is written; after any other error, the row may be there
            await remove(self._storage, [key])
            raise
        return MappingSample(sample_id, name, key, stored.bytes, stored.sha256, expected, created_at)

    async def remove_sample(self, tenant: str, mapping: str, sample_id: Any) -> None:
        async with self._database.hot() as connection, connection.transaction():
            await self._let_go(connection, tenant)
            await _known(connection, tenant, mapping)
            if not await mappings.remove_sample(connection, tenant, mapping, sample_id):
                raise NotFound(msg("convert.mapping.no_sample"))
            await _record(connection, "mapping.sample_removed", tenant, mapping, {"sample": str(sample_id)})

    async def test(self, tenant: str, name: str) -> list[SampleResult]:
        """Convert all samples with a mapping as it is now, and compare."""
        found = await self.get(tenant, name)
        if found.mapping.tenant != tenant:
            raise _none()
        return await self._run(tenant, found)

    async def _run(self, tenant: str, tested: WholeMapping) -> list[SampleResult]:
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

    # What all of them need

    async def _checked(self, tenant: str, files: MappingFiles) -> CheckedMapping:
        try:
            checked = await self._desk.work(owner_of_tenant(tenant), [], check_mapping, files, within=_COMPILED_WITHIN)
        except WorkDied:
            raise Refused(msg("convert.mapping.too_complicated")) from None
        if checked.faults:
            raise InvalidMapping.of(checked.faults)
        return checked

    async def _work(self, tenant: str, function: Callable[..., Any], *arguments: object) -> Any:
        return await self._desk.work(owner_of_tenant(tenant), [], function, *arguments)

    async def _admit(self, connection: Connection, tenant: str) -> None:
        """Conflict while the tenant is being erased."""
        if tenant != SHARED:
            await arrivals.refuse_if_erased(connection, tenant, owner_of_tenant(tenant), None)

    async def _let_go(self, connection: Connection, tenant: str) -> None:
        """Conflict while nothing of the tenant may be removed."""
        await let_holds_wait(connection)
        await refuse_if_held(connection, tenant)


async def _known(connection: Connection, tenant: str, name: str) -> TenantMapping:
    found = await mappings.get(connection, tenant, name, lock=False)
    if found is None:
        raise _none()
    return found


async def _record(
    connection: Connection, action: str, tenant: str, name: str, detail: dict[str, Any] | None = None
) -> None:
    await audit.record(connection, action, f"mapping:{name}", tenant=tenant or None, detail=detail)
    log.info(action.replace(".", "_"), mapping=name, shared=tenant == SHARED)


def _none() -> NotFound:
    return NotFound(msg("convert.mapping.none"))
