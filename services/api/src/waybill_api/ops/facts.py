"""Everything that `/ops` shows of the system, read in one go: samples, queues, workers, breakers, slow jobs, errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from waybill_engine import overview, samples
from waybill_engine.breaker_control import BreakerStatus, list_breakers
from waybill_engine.overview import DeadLetterOverview, KnownQueue, LiveWorker, SlowJob
from waybill_engine.samples import Depth, Sample
from waybill_engine.throughput import Finished, by_kind, by_minute

if TYPE_CHECKING:
    from waybill.db.database import Connection

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Facts:
    now: datetime
    """The database's time, by which all others are judged."""
    sample: Sample | None
    depths: Sequence[Depth]
    """Of the last hour."""
    finished: Sequence[tuple[datetime, Finished]]
    """Of the last hour and all kinds, by minute."""
    finished_kinds: Sequence[Finished]
    """Of the last hour, by kind."""
    queues: Sequence[KnownQueue]
    workers: Sequence[LiveWorker]
    breakers: Sequence[BreakerStatus]
    running: Sequence[SlowJob]
    waiting: Sequence[SlowJob]
    """The one that has waited longest in each lane."""
    dead_letters: DeadLetterOverview


async def read(connection: Connection) -> Facts:
    sample = await samples.newest(connection)
    return Facts(
        now=await connection.fetchval("SELECT now()"),
        sample=sample,
        depths=await samples.depths(connection, HOUR),
        finished=await by_minute(connection, HOUR),
        finished_kinds=await by_kind(connection, HOUR),
        queues=await overview.known_queues(connection),
        workers=await overview.live_workers(connection),
        breakers=await list_breakers(connection),
        running=await overview.running_jobs(connection),
        waiting=await overview.still_waiting(connection, sample.waiting_longest if sample is not None else ()),
        dead_letters=await overview.dead_letters(connection),
    )
