"""How long the convert pipeline keeps what, for the janitor: documents, results, tombstones, retired mappings; and
noting durations.

A new rule is an entry here and its SQL in `repository.retention`; a new storage prefix is an entry here.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from waybill import audit
from waybill.changes import Event, publish
from waybill.janitor.task import BATCH, Batch, Tally, TaskTools
from waybill.retention import (
    LONGEST_DAYS,
    ObjectNames,
    PipelineRetention,
    RetentionRule,
    SettingsOf,
    let_holds_wait,
)
from waybill_convert.events import EXPIRED
from waybill_convert.kinds import CONVERT_PDF
from waybill_convert.repository import durations, mapping_catalogues, retired_mappings
from waybill_convert.repository import retention as repository
from waybill_convert.settings import ConvertSettings
from waybill_engine.retention import with_artefacts

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill.retention.rules import JobIds


def _document_days(settings_of: SettingsOf) -> float:
    return settings_of(ConvertSettings).pdf_ttl_days


def _result_days(settings_of: SettingsOf) -> float:
    return settings_of(ConvertSettings).xml_ttl_days


def _download_days(settings_of: SettingsOf) -> float:
    return 0.0 if settings_of(ConvertSettings).xml_on_download else LONGEST_DAYS


async def _remove_results(connection: Connection, job_ids: JobIds, _days: float) -> Mapping[str, int]:
    removed = await repository.remove_results(connection, job_ids)
    for one in removed.expired:
        await publish(connection, Event(EXPIRED, one.tenant, one.owner, one.job_id))
    return {"results": removed.files, "bytes": removed.bytes, "expired": len(removed.expired)}


class Durations:
    """Notes how long documents take by their size, so that estimates survive the jobs they are made from."""

    name = "durations"
    items = "sizes to note durations of"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools

    async def plan(self) -> AsyncIterator[Batch]:
        async with self._tools.database.hot() as connection:
            sizes = await durations.summary(connection)
        yield Batch(sizes, {"samples": float(sum(samples for _, samples, *_ in sizes))})

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection:
            await durations.note(connection, batch.items)
        return Tally()


class Catalogues:
    """Removes the catalogues of `auto` that no conversion names any more."""

    name = "catalogues"
    items = "catalogues that no job names"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools

    async def plan(self) -> AsyncIterator[Batch]:
        after = ""
        while True:
            async with self._tools.database.hot() as connection:
                page = await mapping_catalogues.unused(connection, after, BATCH)
            if not page:
                return
            after = page[-1]
            yield Batch(page)

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection:
            removed = await mapping_catalogues.remove(connection, batch.items)
        return Tally(Counter(catalogues=removed))


class RetiredMappings:
    """Removes retired mappings that nothing names any more, so that their number has a bound without a cap."""

    name = "mappings"
    items = "retired mappings that no job names"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools
        self._days = tools.settings_of(ConvertSettings).retired_mapping_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        after = retired_mappings.RetiredMapping("", "")
        while True:
            async with self._tools.database.hot() as connection:
                page = await retired_mappings.unnamed(connection, self._days, after, BATCH)
            if not page:
                return
            after = page[-1]
            yield Batch(page)

    async def do(self, batch: Batch) -> Tally:
        removed = 0
        async with self._tools.database.hot() as connection, connection.transaction():
            await let_holds_wait(connection)
            for tenant, theirs in groupby(batch.items, key=attrgetter("tenant")):
                names = [one.name for one in theirs]
                for gone in await retired_mappings.remove(connection, self._days, tenant, names):
                    removed += 1
                    detail = {"sha256": gone.sha256}
                    subject = f"mapping:{gone.name}"
                    await audit.record(connection, "mapping.removed", subject, tenant=tenant or None, detail=detail)
        return Tally(Counter(mappings=removed))


class Tombstones:
    """Removes what is left of deleted conversions once those who follow their list have had the time to hear of it."""

    name = "tombstones"
    items = "tombstones of deleted jobs"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools
        self._days = tools.settings_of(ConvertSettings).tombstone_ttl_days

    async def plan(self) -> AsyncIterator[Batch]:
        after = uuid.UUID(int=0)
        while True:
            async with self._tools.database.hot() as connection:
                page = await repository.tombstones(connection, after, BATCH, self._days)
            if not page:
                return
            after = page[-1].job_id
            yield Batch([one.job_id for one in page if one.due])

    async def do(self, batch: Batch) -> Tally:
        async with self._tools.database.hot() as connection, connection.transaction():
            await let_holds_wait(connection)
            removed = await repository.remove_tombstones(connection, batch.items, self._days)
        return Tally(Counter(tombstones=removed))


RETENTION = PipelineRetention(
    rules=(
        RetentionRule(
            name="documents",
            keeps="documents",
            items="documents past their time",
            default_days=_document_days,
            find=repository.with_document,
            due=repository.documents_due,
            remove=repository.remove_documents,
        ),
        RetentionRule(
            name="results",
            keeps="results",
            items="jobs whose results are past their time",
            default_days=_result_days,
            find=with_artefacts,
            due=repository.results_due,
            remove=_remove_results,
        ),
        RetentionRule(
            name="downloads",
            keeps="results once downloaded",
            items="jobs whose results were downloaded",
            default_days=_download_days,
            find=repository.downloaded,
            due=repository.downloads_due,
            remove=_remove_results,
            task="results",
        ),
    ),
    prefixes=("pages", "samples", "uploads"),
    objects=ObjectNames(
        owned=repository.owned, named=repository.named, expected=repository.expected, mark=repository.mark
    ),
    keeps_job=repository.keeps_job,
    kinds_with_rows=(CONVERT_PDF.name,),
    tables=("conversions",),
    tasks_before=(Durations,),
    tasks_after=(Tombstones, Catalogues, RetiredMappings),
)
