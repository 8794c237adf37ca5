"""Everything the leader does, put together: it looks at what changes, and has pools looked at."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Never

import structlog

from waybill.cluster import ClusterApi, ClusterError, Informer, Object, Resource, Withheld
from waybill.cluster.informer import without_managers
from waybill.cluster.resources import AUTOSCALERS, DEPLOYMENTS, DISRUPTION_BUDGETS, PODS
from waybill.db import Database
from waybill.telemetry.metrics import OPERATOR_RECONCILE
from waybill_engine.busy_pods import running_by_pod
from waybill_engine.pods.deaths import Settled
from waybill_engine.pods.verdicts import Fate
from waybill_operator.configuration import ConfigurationFolder
from waybill_operator.controller.default_pool import DefaultPool
from waybill_operator.controller.drain import Drain
from waybill_operator.controller.events import EventRecorder
from waybill_operator.controller.owned_objects import OwnedObjects
from waybill_operator.controller.pod_costs import Jobs, PodCosts
from waybill_operator.controller.pod_watch import PodWatch
from waybill_operator.controller.reconciler import PoolNumbers, Reconciler, ReconcilerTools
from waybill_operator.controller.work_queue import WorkQueue
from waybill_operator.pools.pool import POOL_LABEL, WorkerPool

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_RECONCILERS = 4
_RESYNC_EVERY = 600.0
"""Seconds after which every pool gets a look, whether or not anything changed."""
WORKER_PODS = "app.kubernetes.io/component=worker"


def slim_pod(pod: Object) -> Object:
    """What of a pod is looked at. There may be thousands."""
    metadata = without_managers(pod)["metadata"]
    kept = (
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "labels",
        "annotations",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
    return {
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {key: pod["spec"][key] for key in ("nodeName",) if key in pod.get("spec", {})},
        "status": pod.get("status", {}),
    }


class Controller:
    def __init__(
        self,
        api: ClusterApi,
        pools: Informer,
        folder: ConfigurationFolder,
        figures: PoolNumbers,
        database: Database | None,
        *,
        namespace: str,
        prefix: str,
        instance: str,
        status_interval: float = 15.0,
        with_default_pool: bool = True,
        queue: WorkQueue | None = None,
    ) -> None:
        """`api` must refuse to write when we no longer lead. Without a database nobody knows of jobs."""
        self._pools = pools
        self._folder = folder
        self._figures = figures
        self._queue = queue or WorkQueue()
        self.pods = Informer(api, PODS, namespace, labels=WORKER_PODS, keep=slim_pod)
        self._informers: Mapping[Resource, Informer] = {
            resource: Informer(api, resource, namespace, labels=POOL_LABEL)
            for resource in (DEPLOYMENTS, AUTOSCALERS, DISRUPTION_BUDGETS)
        }
        self._events = EventRecorder(api, instance)
        self._costs = PodCosts(api, self.pods, _counter(database, namespace))
        self._pod_watch = (
            PodWatch(
                api, self.pods, database, namespace, POOL_LABEL, told=self._worker_died, may_write=lambda: api.may_write
            )
            if database is not None
            else None
        )
        owned = OwnedObjects(api, self._informers)
        drain = Drain(api, owned, self.pods, self._events, prefix)
        self._default_pool = DefaultPool(api, pools, folder, namespace, prefix) if with_default_pool else None
        self._reconciler = Reconciler(
            ReconcilerTools(api, pools, owned, self._events, self._costs, drain, lambda: folder.current, figures),
            prefix,
            status_interval=status_interval,
        )

    async def run(self) -> Never:
        """Lead, until cancelled."""
        self._pools.on_change(self._pool_changed)
        self._folder.on_change(self.look_at_all)
        self.pods.on_change(self._pod_changed)
        for informer in self._informers.values():
            informer.on_change(self._owned_changed)
        try:
            async with asyncio.TaskGroup() as tasks:
                for informer in (*self._informers.values(), self.pods):
                    tasks.create_task(informer.run())
                tasks.create_task(self._events.run())
                tasks.create_task(self._costs.run())
                await self._know_everything()
                if self._pod_watch is not None:
                    tasks.create_task(self._pod_watch.run())
                if self._default_pool is not None:
                    tasks.create_task(self._default_pool.run())
                for _ in range(_RECONCILERS):
                    tasks.create_task(self._reconcile())
                tasks.create_task(self._resync())
        finally:
            self._pools.off_change(self._pool_changed)
            self._folder.off_change(self.look_at_all)
        raise AssertionError("the leader's tasks never end")

    def look_at_all(self) -> None:
        for name in self._pools.objects:
            self._queue.add(name)

    def figures_changed(self, pool: str) -> None:
        """The figures of a pool are others than they were, so its status may be."""
        if pool in self._pools.objects:
            self._queue.add(pool)

    async def _know_everything(self) -> None:
        """Whoever acts on half of what there is makes what exists, and removes what is needed."""
        for informer in (self._pools, *self._informers.values(), self.pods):
            await informer.wait_until_listed()

    async def _resync(self) -> Never:
        while True:
            self.look_at_all()
            await asyncio.sleep(_RESYNC_EVERY)

    async def _reconcile(self) -> Never:
        while True:
            name = await self._queue.take()
            began = time.monotonic()
            outcome, wait = "ok", None
            try:
                again = await self._reconciler.reconcile(name)
            except Withheld:
                self._queue.done(name)
                await asyncio.sleep(1)  # we are about to be cancelled
                continue
            except ClusterError as error:
                outcome, wait = "refused", error.retry_after
                log.warning("pool_not_reconciled", pool=name, error=error.message)
            except Exception:
                outcome = "failed"
                log.exception("pool_not_reconciled", pool=name)
            OPERATOR_RECONCILE.labels(outcome).observe(time.monotonic() - began)
            self._queue.done(name, failed=outcome != "ok", retry_after=wait)
            if outcome == "ok" and again is not None:
                self._queue.add_after(name, again)

    # What changes

    def _worker_died(self, settled: Settled, pool: str | None) -> None:
        """Tell people about deaths that are nobody's intention."""
        found = self._pools.objects.get(pool or "")
        if found is None or not settled.verdict.charged:
            return
        reason = "WorkerOOMKilled" if settled.verdict.fate is Fate.OOM_KILLED else "WorkerCrashed"
        note = f"{settled.worker.name}: {settled.verdict.says} It ran {len(settled.jobs)} jobs."
        self._events.say(WorkerPool(found), "Warning", reason, "Watch", note)

    def _pool_changed(self, before: Object | None, after: Object | None) -> None:
        one = after or before
        if one is not None and (before is None or after is None or _asked(before) != _asked(after)):
            self._queue.add(one["metadata"]["name"])

    def _owned_changed(self, before: Object | None, after: Object | None) -> None:
        one = after or before
        if one is None:
            return
        is_deployment = one.get("kind") == DEPLOYMENTS.kind
        # Autoscalers write into their own status every few seconds, which is no news.
        if is_deployment or before is None or after is None or before.get("spec") != after.get("spec"):
            self._queue.add(one["metadata"]["labels"][POOL_LABEL])

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        """Pods matter to a pool that waits for their end."""
        one = after or before
        if one is None:
            return
        found = self._pools.objects.get((one["metadata"].get("labels") or {}).get(POOL_LABEL, ""))
        if found is not None and WorkerPool(found).deleted_at is not None:
            self._queue.add(found["metadata"]["name"])


def _counter(database: Database | None, namespace: str) -> Jobs:
    async def count() -> Mapping[str, int]:
        if database is None:
            return {}
        async with database.hot() as connection:
            return await running_by_pod(connection, namespace)

    return count


def _asked(pool: Object) -> Object:
    """What of a pool others write: all but its status."""
    metadata = {key: value for key, value in pool["metadata"].items() if key != "resourceVersion"}
    return {"metadata": metadata, "spec": pool.get("spec")}
