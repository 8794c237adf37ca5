"""A running controller of worker pools, against the tests' API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from support.cluster_server import ClusterServer
from support.pool_objects import PREFIX, TEMPLATE
from waybill.cluster import ClusterApi, Informer, Object
from waybill.cluster.backoff import Backoff
from waybill.cluster.resources import DEPLOYMENTS, EVENTS, PODS, WORKER_POOLS
from waybill.db import Database
from waybill_operator.configuration import ConfigurationFolder
from waybill_operator.controller.controller import Controller
from waybill_operator.controller.work_queue import WorkQueue
from waybill_operator.pools.figures import PoolFigures


class GivenFigures:
    """Figures that a test decides."""

    def __init__(self) -> None:
        self.trouble: str | None = None
        self.by_pool: dict[str, PoolFigures] = {}

    def of(self, pool: str) -> PoolFigures | None:
        return self.by_pool.get(pool)

    def say(self, pool: str, *, wanted: int = 0, queued: int = 0) -> None:
        at = datetime.now(UTC)
        self.by_pool[pool] = PoolFigures(wanted, queued, 0, None, 0.0, "closed", at)


class Running:
    def __init__(self, controller: Controller, figures: GivenFigures, folder: ConfigurationFolder) -> None:
        self.controller = controller
        self.figures = figures
        self.folder = folder
        self.task: asyncio.Task[None] | None = None


def write_template(folder: Path, template: Object = TEMPLATE, default_pool: Any = None) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "worker-template.yaml").write_text(yaml.safe_dump(template))
    path = folder / "default-pool.yaml"
    if default_pool is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(yaml.safe_dump(default_pool))


@asynccontextmanager
async def controlling(
    api: ClusterApi,
    folder: Path,
    *,
    database: Database | None = None,
    default_pool: Any = None,
    prefix: str = PREFIX,
    status_interval: float = 0.05,
    per_second: float = 20.0,
) -> AsyncIterator[Running]:
    if not (folder / "worker-template.yaml").exists():
        write_template(folder, default_pool=default_pool)
    configuration = ConfigurationFolder(folder)
    configuration.look()
    pools = Informer(api, WORKER_POOLS, "default", backoff=Backoff(0.02, 0.2))
    figures = GivenFigures()
    controller = Controller(
        api,
        pools,
        configuration,
        figures,
        database,
        namespace="default",
        prefix=prefix,
        instance="test",
        status_interval=status_interval,
        queue=WorkQueue(per_second=per_second, burst=50),
    )
    running = Running(controller, figures, configuration)
    watching: asyncio.Task[None] = asyncio.create_task(pools.run())
    running.task = working = asyncio.create_task(controller.run())
    try:
        yield running
        if working.done():
            working.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


def deployment(cluster: ClusterServer, pool: str = "default") -> Object | None:
    return cluster.object(DEPLOYMENTS, PREFIX + "-worker" + ("" if pool == "default" else f"-{pool}"))


def replicas(cluster: ClusterServer, pool: str = "default") -> int | None:
    found = deployment(cluster, pool)
    return None if found is None else int(found["spec"]["replicas"])


def condition(cluster: ClusterServer, type_: str, pool: str = "default") -> tuple[str, str] | None:
    found = cluster.object(WORKER_POOLS, pool) or {}
    for one in (found.get("status") or {}).get("conditions") or ():
        if one["type"] == type_:
            return one["status"], one["reason"]
    return None


def events(cluster: ClusterServer) -> set[str]:
    return {one["reason"] for one in cluster.objects(EVENTS).values()}


async def put_pod(
    cluster: ClusterServer, name: str, pool: str = "default", *, phase: str = "Running", **status: Any
) -> Object:
    """A pod of a pool, as the kubelet would report it."""
    return await cluster.put(
        PODS,
        {
            "metadata": {
                "name": name,
                "labels": {"app.kubernetes.io/component": "worker", "waybill.dev/pool": pool},
            },
            "spec": {"nodeName": "node1"},
            "status": {"phase": phase, **status},
        },
    )
