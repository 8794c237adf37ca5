"""Busy pods are marked, so that idle ones go first, and no pod is patched for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.cluster_server import ClusterServer
from support.controllers import controlling, put_pod, replicas
from support.engine import some_jobs, take
from support.patience import until
from support.pod_workers import worker_in
from waybill import background_tasks
from waybill.cluster import ClusterApi, Informer
from waybill.cluster.resources import PODS, WORKER_POOLS
from waybill.db import Database
from waybill_engine.busy_pods import running_by_pod
from waybill_operator.controller.pod_costs import PodCosts

COST = "controller.kubernetes.io/pod-deletion-cost"
BUSY = {COST, "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"}


class Jobs:
    def __init__(self) -> None:
        self.by_uid: dict[str, int] = {}
        self.away = False

    async def __call__(self) -> dict[str, int]:
        if self.away:
            raise ConnectionRefusedError("no database")
        return self.by_uid


@asynccontextmanager
async def marking(
    api: ClusterApi, jobs: Jobs, idle_for: float = 0.3, look_every: float = 0.02
) -> AsyncIterator[PodCosts]:
    pods = Informer(api, PODS, "default")
    costs = PodCosts(api, pods, jobs, look_every=look_every, idle_for=idle_for)
    async with background_tasks.running(pods.run(), "pods"), background_tasks.running(costs.run(), "costs"):
        await pods.wait_until_listed()
        yield costs


def marks(cluster: ClusterServer, name: str) -> dict[str, Any]:
    pod = cluster.object(PODS, name)
    assert pod is not None
    return pod["metadata"].get("annotations") or {}


def patches(cluster: ClusterServer) -> int:
    return len([one for one in cluster.written if one[0] == "PATCH" and "/pods/" in one[1]])


async def test_a_pod_is_patched_when_it_becomes_busy_and_when_it_is_idle_and_not_in_between(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    uid = (await put_pod(cluster, "w1"))["metadata"]["uid"]
    jobs = Jobs()
    async with marking(api, jobs):
        for running in (1, 5, 2, 7):
            jobs.by_uid = {uid: running}
            await asyncio.sleep(0.08)
        assert set(marks(cluster, "w1")) == BUSY
        assert marks(cluster, "w1")["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
        assert patches(cluster) == 1
        jobs.by_uid = {}
        await until(lambda: marks(cluster, "w1") == {})
        await asyncio.sleep(0.1)
        assert patches(cluster) == 2


async def test_a_short_pause_between_two_jobs_is_not_idleness(cluster: ClusterServer, api: ClusterApi) -> None:
    uid = (await put_pod(cluster, "w1"))["metadata"]["uid"]
    jobs = Jobs()
    async with marking(api, jobs, idle_for=60):
        for number in range(6):
            jobs.by_uid = {uid: number % 2}
            await asyncio.sleep(0.06)
    assert patches(cluster) == 1


async def test_before_a_pool_gets_smaller_its_pods_are_marked_by_what_they_run(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    uids = [(await put_pod(cluster, name))["metadata"]["uid"] for name in ("w1", "w2", "w3")]
    await put_pod(cluster, "other", "another-pool")
    jobs = Jobs()
    jobs.by_uid = dict.fromkeys(uids, 1)
    # It looks once by itself; what follows is not the next look's doing.
    async with marking(api, jobs, idle_for=60, look_every=3600) as costs:
        await until(lambda: all(marks(cluster, name) for name in ("w1", "w2", "w3")))
        jobs.by_uid = {uids[0]: 9, uids[1]: 2}
        await costs.mark_exactly("default")
        await until(lambda: [marks(cluster, name).get(COST) for name in ("w1", "w2", "w3")] == ["9", "2", None])
        assert marks(cluster, "other") == {}


async def test_while_nobody_knows_the_marks_stay(cluster: ClusterServer, api: ClusterApi) -> None:
    uid = (await put_pod(cluster, "w1"))["metadata"]["uid"]
    jobs = Jobs()
    jobs.by_uid = {uid: 1}
    async with marking(api, jobs, idle_for=0.05) as costs:
        await until(lambda: set(marks(cluster, "w1")) == BUSY)
        jobs.away = True
        await asyncio.sleep(0.2)
        await costs.mark_exactly("default")
        assert set(marks(cluster, "w1")) == BUSY


async def test_pods_that_are_not_ours_or_that_leave_are_not_patched(cluster: ClusterServer, api: ClusterApi) -> None:
    stranger = await cluster.put(PODS, {"metadata": {"name": "db"}, "spec": {}})
    leaving = await put_pod(cluster, "w1")
    pod = cluster.object(PODS, "w1")
    assert pod is not None
    await cluster.put(PODS, {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "x", "finalizers": ["f"]}})
    jobs = Jobs()
    jobs.by_uid = {stranger["metadata"]["uid"]: 1, leaving["metadata"]["uid"]: 1}
    async with marking(api, jobs):
        await asyncio.sleep(0.2)
    assert patches(cluster) == 0


async def test_jobs_are_counted_by_the_pod_of_their_worker(db: Database) -> None:
    pods = [{"metadata": {"name": f"w{number}", "uid": f"u{number}"}} for number in range(3)]
    async with db.hot() as connection:
        await some_jobs(connection, 5)
        for pod, count in zip(pods, (3, 2, 0), strict=True):
            await take(connection, await worker_in(connection, pod), count) if count else await worker_in(
                connection, pod
            )
        # A second worker in the first pod, and one in another namespace.
        await worker_in(connection, pods[0])
        await worker_in(connection, {"metadata": {"name": "x", "uid": "elsewhere"}}, namespace="other")
        assert await running_by_pod(connection, "default") == {"u0": 3, "u1": 2, "u2": 0}


async def test_pods_are_marked_before_the_deployment_is_scaled_down(
    cluster: ClusterServer, api: ClusterApi, db: Database, tmp_path: Path
) -> None:
    await cluster.put(WORKER_POOLS, {"metadata": {"name": "default"}, "spec": {"replicas": 3}})
    pods = [await put_pod(cluster, f"w{number}") for number in range(3)]
    async with controlling(api, tmp_path / "etc", database=db):
        await until(lambda: replicas(cluster) == 3)
        async with db.hot() as connection:
            await some_jobs(connection, 2)
            await take(connection, await worker_in(connection, pods[1]), 2)
        pool = cluster.object(WORKER_POOLS, "default")
        assert pool is not None
        await cluster.put(WORKER_POOLS, {**pool, "spec": {**pool["spec"], "replicas": 1}})
        await until(lambda: replicas(cluster) == 1)
        assert marks(cluster, "w1")[COST] == "2"
    written = [path for method, path, _ in cluster.written if method == "PATCH"]
    marked = max(index for index, path in enumerate(written) if path.endswith("/pods/w1"))
    scaled = max(index for index, path in enumerate(written) if "/deployments/" in path)
    assert marked < scaled
