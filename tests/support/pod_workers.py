"""Workers that say which pod they are in, and jobs that they run."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

from support.engine import one_job, take
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill_engine.lease import WorkerInfo, register

_numbers = itertools.count(1)


async def worker_in(connection: Connection, pod: Any, *, namespace: str = "default", ttl: float = 60.0) -> WorkerInfo:
    """A worker in a pod that the tests' API server has."""
    number = next(_numbers)
    worker = WorkerInfo(
        id=new_id(),
        name=f"{pod['metadata']['name']}:{number}",
        host=pod["metadata"]["name"],
        pid=number,
        version="test",
        queues=["default"],
        kinds=["work", "other"],
        concurrency=10,
        pod_namespace=namespace,
        pod_name=pod["metadata"]["name"],
        pod_uid=pod["metadata"]["uid"],
        node_started_at=datetime.now(UTC),
    )
    await register(connection, worker, ttl)
    return worker


async def give_job(connection: Connection, worker: WorkerInfo) -> Any:
    """A job that this worker runs."""
    job = await one_job(connection)
    [claimed] = await take(connection, worker, 1)
    assert claimed.id == job
    return claimed
