"""The batches pipeline's settings. Its limits are its own: those of convert are for single documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, ClassVar

from pydantic import Field

from waybill.config import load
from waybill.config.archive_limits import ArchiveLimitsSettings
from waybill.config.gateway_client import GatewayClientSettings
from waybill.config.mappings_dir import MappingsDirSettings
from waybill.config.values import Bare, Days, Seconds
from waybill_batches.language_model_settings import LanguageModelSettings


class BatchSettings(ArchiveLimitsSettings, GatewayClientSettings, MappingsDirSettings, LanguageModelSettings):
    """Settings of the batches pipeline, in the API, the worker and the janitor."""

    title: ClassVar[str] = "Batches"

    batch_upload_timeout: Seconds = Field(
        1800.0,
        gt=0,
        description="How long a client may take to send a ZIP. Slower clients get a 408, so that they cannot hold"
        " connections for ever.",
    )
    batch_unpack_time: Annotated[Seconds, Bare("BATCH_PROCESSING_TIMEOUT")] = Field(
        1800.0,
        ge=60,
        le=86400,
        description="How long unpacking one ZIP may take, in a worker. All services need the same.",
    )
    batch_unpack_calls: int = Field(
        2,
        ge=0,
        le=100_000,
        description="How many ZIPs may be unpacked at once, in the whole cluster. A gateway needs disk space for each"
        " of them, so raise it together with the gateway's. Workers set this cap when they start, unless `waybill caps`"
        " was ever used for `process_batch`. 0 means no cap.",
    )
    batch_uploads_per_minute: int = Field(
        10,
        ge=1,
        le=100_000,
        description="How many ZIPs one owner (a browser session, or all API keys of a tenant) may send in a minute,"
        " counted across all replicas.",
    )
    batch_sources_ttl_days: Days = Field(
        7.0,
        le=36500,
        description="How many days the files of a batch are kept after it has ended. Without them, failed files can no"
        " longer be retried. A tenant may have its own number: `waybill tenant retention`.",
    )
    batch_results_ttl_days: Days = Field(
        30.0,
        le=36500,
        description="How many days the results of a batch are kept after it has ended. It then stays listed as"
        " expired.",
    )


@asynccontextmanager
async def batch_settings() -> AsyncIterator[BatchSettings]:
    """The worker's settings, read once: `await job.use(batch_settings)`."""
    yield load(BatchSettings)
