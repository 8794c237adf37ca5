"""When a pod dies, the jobs of its workers are somebody else's at once."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

from support.cluster_server import ClusterServer
from support.controllers import controlling, events, put_pod
from support.engine import row
from support.patience import eventually, until
from support.pod_workers import give_job, worker_in
from support.pods import restarted_after
from waybill.cluster import ClusterApi
from waybill.cluster.resources import PODS, WORKER_POOLS
from waybill.db import Database
from waybill.telemetry.metrics import OPERATOR_DEAD_WORKERS

LATER = 3600.0
"""A lease that no test waits for."""


async def job_state(db: Database, job: Any) -> tuple[str, int]:
    async with db.hot() as connection:
        found = await row(connection, job.id)
    return found["state"], found["attempts"]


async def until_state(db: Database, job: Any, expected: tuple[str, int]) -> None:
    async def look() -> bool:
        return await job_state(db, job) == expected

    await eventually(look, what=f"job is {expected}")


async def test_a_pod_that_is_deleted_gives_its_jobs_back_uncharged(
    cluster: ClusterServer, api: ClusterApi, db: Database, tmp_path: Path
) -> None:
    pod = await put_pod(cluster, "w1")
    async with db.hot() as connection:
        job = await give_job(connection, await worker_in(connection, pod, ttl=LATER))
    async with controlling(api, tmp_path / "etc", database=db):
        await asyncio.sleep(0.3)
        assert await job_state(db, job) == ("running", 0)
        await cluster.remove(PODS, "w1")
        await until_state(db, job, ("queued", 0))
        assert OPERATOR_DEAD_WORKERS.labels("gone").value == 1


async def test_a_container_that_was_killed_for_its_memory_charges_the_job_and_people_are_told(
    cluster: ClusterServer, api: ClusterApi, db: Database, tmp_path: Path
) -> None:
    await cluster.put(WORKER_POOLS, {"metadata": {"name": "default"}, "spec": {"replicas": 1}})
    pod = await put_pod(cluster, "w1")
    async with db.hot() as connection:
        worker = await worker_in(connection, pod, ttl=LATER)
        job = await give_job(connection, worker)
    assert worker.node_started_at is not None
    async with controlling(api, tmp_path / "etc", database=db):
        await asyncio.sleep(0.3)
        killed = restarted_after(worker.node_started_at, 137, "OOMKilled", uid=pod["metadata"]["uid"], name="w1")
        await cluster.put(PODS, {**copy.deepcopy(pod), "status": killed["status"]})
        await until_state(db, job, ("queued", 1))

        async def told() -> bool:
            return "WorkerOOMKilled" in events(cluster)

        await eventually(told)


async def test_what_happened_while_nobody_watched_is_found_by_the_next_leader(
    cluster: ClusterServer, api: ClusterApi, db: Database, tmp_path: Path
) -> None:
    pod = await put_pod(cluster, "w1", phase="Failed", reason="Evicted")
    async with db.hot() as connection:
        job = await give_job(connection, await worker_in(connection, pod, ttl=LATER))
    async with controlling(api, tmp_path / "etc", database=db):
        await until_state(db, job, ("queued", 0))


async def test_a_node_that_does_not_answer_leaves_its_jobs_to_their_leases(
    cluster: ClusterServer, api: ClusterApi, db: Database, tmp_path: Path
) -> None:
    pod = await put_pod(cluster, "w1")
    async with db.hot() as connection:
        job = await give_job(connection, await worker_in(connection, pod, ttl=LATER))
    async with controlling(api, tmp_path / "etc", database=db):
        unknown = {"phase": "Unknown", "conditions": [{"type": "Ready", "status": "Unknown"}]}
        await cluster.put(PODS, {**copy.deepcopy(pod), "status": unknown})
        await asyncio.sleep(0.6)
        assert await job_state(db, job) == ("running", 0)


async def test_workers_elsewhere_are_not_judged(
    cluster: ClusterServer, api: ClusterApi, db: Database, tmp_path: Path
) -> None:
    """A pod of another namespace is not seen here, which says nothing about it."""
    pod = {"metadata": {"name": "far", "uid": "u1"}}
    async with db.hot() as connection:
        job = await give_job(connection, await worker_in(connection, pod, namespace="elsewhere", ttl=LATER))
    async with controlling(api, tmp_path / "etc", database=db):
        await put_pod(cluster, "w1")
        await cluster.remove(PODS, "w1")
        await asyncio.sleep(0.5)
        assert await job_state(db, job) == ("running", 0)


async def test_a_pod_without_our_labels_is_asked_for_by_name(
    cluster: ClusterServer, api: ClusterApi, db: Database, tmp_path: Path
) -> None:
    pod = await cluster.put(
        PODS, {"metadata": {"name": "own"}, "spec": {}, "status": {"phase": "Failed", "reason": "Preempting"}}
    )
    async with db.hot() as connection:
        job = await give_job(connection, await worker_in(connection, pod, ttl=LATER))
    async with controlling(api, tmp_path / "etc", database=db):
        await until_state(db, job, ("queued", 0))


async def test_a_pod_whose_label_somebody_takes_away_is_not_gone(
    cluster: ClusterServer, api: ClusterApi, db: Database, tmp_path: Path
) -> None:
    """As people do who want to look at one in peace. The watch says that it was deleted."""
    pod = await put_pod(cluster, "w1")
    async with db.hot() as connection:
        job = await give_job(connection, await worker_in(connection, pod, ttl=LATER))
    async with controlling(api, tmp_path / "etc", database=db) as running:
        await until(lambda: "w1" in running.controller.pods.objects)
        found = copy.deepcopy(cluster.object(PODS, "w1"))
        assert found is not None
        found["metadata"]["labels"] = {}
        await cluster.hide(PODS, found)
        await until(lambda: "w1" not in running.controller.pods.objects)
        await asyncio.sleep(0.5)
        assert await job_state(db, job) == ("running", 0)


async def test_without_permission_jobs_are_left_to_their_leases(
    cluster: ClusterServer, api: ClusterApi, db: Database, tmp_path: Path
) -> None:
    pod = await put_pod(cluster, "w1", phase="Failed")
    async with db.hot() as connection:
        job = await give_job(connection, await worker_in(connection, pod, ttl=LATER))
    cluster.refuse("GET", "/pods", 403, times=-1)
    async with controlling(api, tmp_path / "etc", database=db):
        await asyncio.sleep(0.5)
        assert await job_state(db, job) == ("running", 0)
