"""A process that counts for all goes on, whatever becomes of the counting."""

from __future__ import annotations

from structlog.testing import capture_logs

from support.engine import running_job
from waybill.db import Database
from waybill.db.database import Connection
from waybill_engine.models import State
from waybill_engine.sampler import Sampler
from waybill_engine.samples import newest
from waybill_engine.worker.throughput_counter import ThroughputCounter


async def test_samples_are_taken_when_they_are_due(db: Database, hot: Connection) -> None:
    await Sampler(db, 15.0).poll()
    await Sampler(db, 15.0).poll()
    assert await hot.fetchval("SELECT count(*) FROM samples") == 1
    assert await newest(hot) is not None


async def test_what_cannot_be_counted_stops_nobody(db: Database, hot: Connection) -> None:
    _, claimed = await running_job(hot)
    throughput = ThroughputCounter(db, 20.0)
    throughput.add([claimed], State.SUCCEEDED)
    await hot.execute("DROP TABLE samples, finished_by_minute")
    with capture_logs() as lines:
        await Sampler(db, 15.0).poll()
        await throughput.report()
    assert [line["event"] for line in lines] == ["sample_not_taken", "throughput_not_reported"]
    assert all(line["error"] == "UndefinedTableError" for line in lines)
