"""How long the batches pipeline keeps what, for the janitor: the files of a batch, and its results."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from waybill.changes import Event, publish
from waybill.retention import ObjectNames, PipelineRetention, RetentionRule, SettingsOf
from waybill_batches.events import EXPIRED
from waybill_batches.kinds import ENRICH_FILE, EXTRACT_FILE, KINDS, PROCESS_BATCH, SUMMARIZE_RUN
from waybill_batches.repository import retention as repository
from waybill_batches.settings import BatchSettings
from waybill_engine.retention import with_artefacts

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill.retention.rules import JobIds

_UNPACKED = (PROCESS_BATCH.name,)
_WORKED = (EXTRACT_FILE.name, ENRICH_FILE.name)


def _file_days(settings_of: SettingsOf) -> float:
    return settings_of(BatchSettings).batch_sources_ttl_days


def _result_days(settings_of: SettingsOf) -> float:
    return settings_of(BatchSettings).batch_results_ttl_days


async def _files_due(connection: Connection, job_ids: JobIds, days: float) -> Sequence[uuid.UUID]:
    return await repository.due(connection, job_ids, days, _UNPACKED, "batch_files")


async def _remove_files(connection: Connection, job_ids: JobIds, _days: float) -> Mapping[str, int]:
    return await repository.remove_sources(connection, job_ids)


async def _results_due(connection: Connection, job_ids: JobIds, days: float) -> Sequence[uuid.UUID]:
    return await repository.due(connection, job_ids, days, _WORKED, "batch_results")


async def _remove_results(connection: Connection, job_ids: JobIds, _days: float) -> Mapping[str, int]:
    counts, expired = await repository.remove_results(connection, job_ids)
    for one in expired:
        await publish(connection, Event(EXPIRED, one.tenant, one.owner, one.id))
    return counts


async def _owned(connection: Connection, job_ids: JobIds) -> set[uuid.UUID]:
    return await repository.owned(connection, job_ids, [kind.name for kind in KINDS])


RETENTION = PipelineRetention(
    rules=(
        RetentionRule(
            name="batch_files",
            keeps="files of batches",
            items="batches whose files are past their time",
            default_days=_file_days,
            find=with_artefacts,
            due=_files_due,
            remove=_remove_files,
        ),
        RetentionRule(
            name="batch_zips",
            keeps="ZIPs that could not be unpacked",
            items="ZIPs past their time",
            default_days=_file_days,
            find=repository.with_zip,
            due=repository.zips_due,
            remove=repository.remove_zips,
            task="batch_files",
        ),
        RetentionRule(
            name="batch_results",
            keeps="results of batches",
            items="jobs of batches whose results are past their time",
            default_days=_result_days,
            find=with_artefacts,
            due=_results_due,
            remove=_remove_results,
        ),
    ),
    prefixes=("batches",),
    objects=ObjectNames(owned=_owned, named=repository.named, expected=repository.expected, mark=repository.mark),
    keeps_job=repository.keeps_job,
    kinds_with_rows=(SUMMARIZE_RUN.name,),
    tables=("batches", "batch_files"),
)
