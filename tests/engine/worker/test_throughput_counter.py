"""A worker counts what its runs ended, and leaves nothing uncounted when it stops."""

from __future__ import annotations

import signal

from support import handlers
from support.patience import eventually
from support.workers import StartWorker, all_ended
from waybill.db.database import Connection
from waybill_engine import NewJob, enqueue_many, samples


async def test_every_end_of_a_job_is_counted_once_and_the_worker_takes_samples(
    connection: Connection, start_worker: StartWorker
) -> None:
    await enqueue_many(
        connection,
        [
            *(NewJob(handlers.NOOP, "acme") for _ in range(5)),  # completed in batches
            *(NewJob(handlers.EFFECT, "acme", {"seconds": 0.05}) for _ in range(3)),  # in the handler's transaction
            NewJob(handlers.HANG, "acme"),  # its attempts are used up
            NewJob(handlers.FAIL, "acme", {"permanent": True}),
        ],
    )
    worker = start_worker(sample_interval=1.0, lease_ttl=60, heartbeat_interval=20)
    await eventually(lambda: all_ended(connection), within=60)
    worker.signal(signal.SIGTERM)
    assert await worker.ended() == 0

    rows = await connection.fetch(
        "SELECT kind, outcome, sum(jobs)::int, sum(seconds_running) > 0.1 FROM finished_by_minute"
        " GROUP BY kind, outcome ORDER BY kind"
    )
    assert [tuple(row) for row in rows] == [
        ("effect", "succeeded", 3, True),
        ("fail", "failed", 1, False),
        ("hang", "dead_letter", 1, True),
        ("noop", "succeeded", 5, False),
    ]
    assert await samples.newest(connection) is not None
