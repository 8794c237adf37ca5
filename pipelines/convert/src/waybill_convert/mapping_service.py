"""A tenant's own mappings: draft, test against samples, publish, retire.

`tenant` is whose mapping it is: a tenant's, or SHARED. Who may act for it is checked by the routes. A published mapping
never changes, because jobs name it by its hash; a trigger sees to that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from waybill.errors import BadMapping, Conflict, Refused
from waybill.messages import msg
from waybill.security.principals import owner_of_tenant
from waybill.web.side_processes import WorkDied
from waybill_convert import mapping_guards as guards
from waybill_convert.mapping_models import (
    SHARED,
    InvalidMapping,
    MappingState,
    SampleResult,
    SamplesFail,
    TenantMapping,
    WholeMapping,
)
from waybill_convert.mapping_work import CheckedMapping, check_mapping
from waybill_convert.repository import mappings

if TYPE_CHECKING:
    from waybill.db import Database
    from waybill_convert.mapping_catalogue import MappingCatalogue
    from waybill_convert.review_desk import ReviewDesk
    from waybill_convert.sample_service import MappingSamples
    from waybill_documents.mapping_files import MappingFiles

MOST_MAPPINGS = 100
"""Drafts and published mappings of a tenant, and as many that are shared. With the shipped ones, they are less than the
300 that the gateway takes with a document."""
MOST_MAPPING_BYTES = 1024 * 1024
"""Bytes of one mapping with its schemas."""
MOST_BYTES = 3 * 512 * 1024
"""Bytes of all that a tenant has in use, so that all it can choose from may be sent together (4 MB)."""
_COMPILED_WITHIN = 60.0
"""Seconds, on however busy a machine; `mapping_work` limits the processor time."""

_VERSIONED = re.compile(r"[a-z][a-z0-9_]{0,57}_v[1-9][0-9]{0,3}")


class TenantMappings:
    """The service; one per API process."""

    def __init__(
        self, database: Database, catalogue: MappingCatalogue, desk: ReviewDesk, samples: MappingSamples
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._desk = desk
        self._samples = samples

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
            raise guards.no_mapping()
        return WholeMapping(shared.mapping, shared.files, [])

    # Changing

    async def push(self, tenant: str, files: MappingFiles, *, author: str, name: str | None = None) -> WholeMapping:
        """Make a draft, or with a name replace it. Conflict if the name is taken, or if what has it is published."""
        if files.size > MOST_MAPPING_BYTES:
            raise Refused(msg("convert.mapping.too_large", kilobytes=MOST_MAPPING_BYTES // 1024))
        async with self._database.hot() as connection:  # compiling can take a minute, in which its tenant may be erased
            begun_at = await guards.begin(connection, tenant)
        checked = await self._checked(tenant, files)
        if not _VERSIONED.fullmatch(checked.name):
            raise Refused(msg("convert.mapping.unversioned", name=checked.name))
        if name is not None and name != checked.name:
            raise Refused(msg("convert.mapping.other_name", name=name, other=checked.name))
        if checked.name in self._catalogue.installed:
            raise Conflict(msg("convert.mapping.name_taken", name=checked.name))
        async with self._database.hot() as connection, connection.transaction():
            await guards.admit(connection, tenant, begun_at)
            await mappings.lock_name(connection, tenant, checked.name)
            if await mappings.is_taken(connection, tenant, checked.name):
                raise Conflict(msg("convert.mapping.name_taken", name=checked.name))
            before = await mappings.get(connection, tenant, checked.name)
            if before is not None and name is None:
                raise Conflict(msg("convert.mapping.exists", name=checked.name))
            count, size = await mappings.used(connection, tenant, checked.name)
            if count >= MOST_MAPPINGS or size + files.size > MOST_BYTES:
                raise Conflict(msg("convert.mapping.too_many", number=MOST_MAPPINGS, kilobytes=MOST_BYTES // 1024))
            described = (checked.name, checked.title, checked.embedded)
            if not await mappings.put(connection, tenant, *described, files, author):
                raise Conflict(msg("convert.mapping.published", name=checked.name))
            await guards.record(connection, "mapping.pushed", tenant, checked.name, {"sha256": files.sha256})
            found = await mappings.whole(connection, tenant, checked.name)
        assert found is not None, "it has just been stored"  # noqa: S101
        return found

    async def delete(self, tenant: str, name: str) -> None:
        """Delete a draft. What is published is named by jobs, so it can only be retired."""
        async with self._database.hot() as connection, connection.transaction():
            await guards.let_go(connection, tenant)
            await guards.known(connection, tenant, name)
            if not await mappings.delete(connection, tenant, name):
                raise Conflict(msg("convert.mapping.published", name=name))
            await guards.record(connection, "mapping.deleted", tenant, name)

    async def retire(self, tenant: str, name: str) -> WholeMapping:
        """Hide a published mapping from new uploads. Jobs that named it go on with it. Done twice, nothing changes."""
        async with self._database.hot() as connection, connection.transaction():
            before = await guards.known(connection, tenant, name)
            if before.state is MappingState.DRAFT:
                raise Conflict(msg("convert.mapping.draft", name=name))
            if await mappings.retire(connection, tenant, name):
                await guards.record(connection, "mapping.retired", tenant, name, {"sha256": before.sha256})
        return await self.get(tenant, name)

    async def publish(self, tenant: str, name: str) -> tuple[WholeMapping, list[SampleResult]]:
        """Publish a draft whose samples all pass. SamplesFail if one does not; one without samples may be published."""
        tested = await self.get(tenant, name)
        if tested.mapping.tenant != tenant:
            raise guards.no_mapping()
        if tested.mapping.state is not MappingState.DRAFT:
            raise Conflict(msg("convert.mapping.published", name=name))
        if not (await self._checked(tenant, tested.files)).writes_xml:
            raise BadMapping(msg("convert.mapping.no_xml", name=name))
        results = await self._samples.run(tenant, tested)
        if not all(result.passed for result in results):
            raise SamplesFail.of(results)
        async with self._database.hot() as connection, connection.transaction():
            if not await mappings.publish(connection, tenant, name, tested.mapping.changed_at):
                raise Conflict(msg("convert.mapping.changed_meanwhile", name=name))
            detail = {"sha256": tested.mapping.sha256, "samples": len(results)}
            await guards.record(connection, "mapping.published", tenant, name, detail)
        return await self.get(tenant, name), results

    async def test(self, tenant: str, name: str) -> list[SampleResult]:
        """Convert all samples with a mapping as it is now, and compare."""
        found = await self.get(tenant, name)
        if found.mapping.tenant != tenant:
            raise guards.no_mapping()
        return await self._samples.run(tenant, found)

    async def _checked(self, tenant: str, files: MappingFiles) -> CheckedMapping:
        try:
            checked = await self._desk.work(owner_of_tenant(tenant), [], check_mapping, files, within=_COMPILED_WITHIN)
        except WorkDied:
            raise Refused(msg("convert.mapping.too_complicated")) from None
        if checked.faults:
            raise InvalidMapping.of(checked.faults)
        return checked
