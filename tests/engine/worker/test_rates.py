"""Rates, kept by real processes that know nothing of each other."""

from __future__ import annotations

from datetime import datetime, timedelta

from support.patience import eventually
from support.timed_handlers import BOTH, TIMED
from support.workers import StartWorker, all_ended, counts
from waybill.db.database import Connection
from waybill_engine import NewJob, Pace, enqueue_many
from waybill_engine.rates import set_rate


async def test_three_processes_together_keep_a_rate_and_wake_when_the_next_job_may_start(
    connection: Connection, start_worker: StartWorker
) -> None:
    await set_rate(connection, Pace(10, 2.0, burst=3), kind="timed")
    payload = {"seconds": 0.01}
    await enqueue_many(connection, [NewJob(TIMED, tenant, payload) for tenant in "ab" for _ in range(12)])
    for _ in range(3):
        start_worker(worker_handlers=BOTH, worker_concurrency=6, poll_interval=60)
    await eventually(lambda: all_ended(connection), within=60)
    assert await counts(connection) == {"succeeded": 24}
    rows = await connection.fetch("SELECT started_at FROM jobs ORDER BY started_at")
    starts: list[datetime] = [row[0] for row in rows]
    window = timedelta(seconds=2)
    assert max(sum(first <= other < first + window for other in starts) for first in starts) <= 10
