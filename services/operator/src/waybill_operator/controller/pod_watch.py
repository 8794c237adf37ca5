"""Pod-aware leases: when a pod dies, the jobs of its workers are taken back at once, not when their lease ends.

The engine judges what a pod's state says about its workers, and what follows for their jobs (`waybill_engine.pods`).
This module tells it what happens to pods, as it happens, and now and then looks at all of them, since an event may come
before its worker's row does, or while the database is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Never

import structlog

from waybill.cluster import ClusterApi, ClusterError, Informer, NoSuchObject, Object
from waybill.cluster.resources import PODS
from waybill.db import Database
from waybill.failures import classify
from waybill.telemetry.metrics import OPERATOR_DEAD_WORKERS
from waybill_engine.pods.deaths import Settled, settle_dead, workers_in_pods
from waybill_engine.pods.verdicts import ALIVE, PodVerdict, PodWorker, judge

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_SWEEP_EVERY = 30.0
_TOGETHER = 0.1
"""Seconds in which changes are gathered: a node that dies takes all of its pods."""
_MOST_DELETED = 5000
"""Deleted pods that are remembered until the database has heard of them."""

Told = Callable[[Settled, str | None], None]
"""Called with a worker that was found dead, and the name of its pool if that is known."""


class PodWatch:
    def __init__(
        self,
        api: ClusterApi,
        pods: Informer,
        database: Database,
        namespace: str,
        pool_label: str,
        *,
        told: Told = lambda _settled, _pool: None,
        may_write: Callable[[], bool] = lambda: True,
        sweep_every: float = _SWEEP_EVERY,
    ) -> None:
        self._api = api
        self._pods = pods
        self._database = database
        self._namespace = namespace
        self._pool_label = pool_label
        self._told = told
        self._may_write = may_write
        self._sweep_every = sweep_every
        self._deleted: dict[str, Object] = {}
        """The last states of pods that are gone, by their uid."""
        self._changed: set[str] = set()
        """The uids of pods to which something happened."""
        self._wake = asyncio.Event()
        self._trouble = ""

    async def run(self) -> Never:
        self._pods.on_change(self._see)
        try:
            await self._pods.wait_until_listed()
            all_of_them = True  # for what happened while nobody watched
            while True:
                try:
                    await self._look(all_of_them=all_of_them)
                    self._trouble = ""
                except Exception as error:  # noqa: BLE001 - told, and tried again
                    if (said := classify(error).message) != self._trouble:
                        log.warning("dead_workers_not_settled", error=said)
                        self._trouble = said
                all_of_them = await self._wait()
        finally:
            self._pods.off_change(self._see)

    async def _wait(self) -> bool:
        """Until something happens (False), or it is time to look at all (True)."""
        if self._trouble:
            await asyncio.sleep(1)  # what was not settled is looked at again, with everything else
            return True
        try:
            async with asyncio.timeout(self._sweep_every):
                await self._wake.wait()
        except TimeoutError:
            return True
        await asyncio.sleep(_TOGETHER)
        self._wake.clear()
        return False

    def _see(self, before: Object | None, after: Object | None) -> None:
        one = after or before
        if one is None or (after is not None and before is not None and _fate(before) == _fate(after)):
            return
        uid = one["metadata"]["uid"]
        if after is None:
            self._deleted[uid] = one
            if len(self._deleted) > _MOST_DELETED:
                del self._deleted[next(iter(self._deleted))]
        self._changed.add(uid)
        self._wake.set()

    async def _look(self, *, all_of_them: bool) -> None:
        changed, self._changed = self._changed, set()
        deleted = dict(self._deleted)
        async with self._database.hot() as connection:
            workers = [one for one in await workers_in_pods(connection) if one.namespace == self._namespace]
        if not all_of_them:
            workers = [one for one in workers if one.uid in changed]
        verdicts = [(worker, await self._judge(worker, deleted)) for worker in workers]
        dead = [(worker, verdict) for worker, verdict in verdicts if verdict.dead]
        if dead and self._may_write():
            async with self._database.hot() as connection:
                for settled in await settle_dead(connection, dead):
                    self._tell(settled, deleted)
        for uid in deleted:
            self._deleted.pop(uid, None)

    async def _judge(self, worker: PodWorker, deleted: Mapping[str, Object]) -> PodVerdict:
        found = self._pods.objects.get(worker.pod)
        if found is not None and found["metadata"]["uid"] == worker.uid:
            return judge(worker, found)
        # Our copy may be late, and whoever takes a label from a pod takes it out of our sight. The server itself knows.
        try:
            found = await self._api.get(PODS, worker.pod, self._namespace)
        except NoSuchObject:
            found = None
        except ClusterError as error:
            log.debug("pod_not_read", pod=worker.pod, error=error.message)
            return ALIVE  # as far as we know: its lease decides
        last = deleted.get(worker.uid)
        if last is not None and (found is None or found["metadata"]["uid"] != worker.uid):
            return judge(worker, last, deleted=True)
        return judge(worker, found)

    def _tell(self, settled: Settled, deleted: Mapping[str, Object]) -> None:
        worker, fate = settled.worker, settled.verdict.fate.value
        OPERATOR_DEAD_WORKERS.labels(fate).inc()
        log.warning("worker_dead", worker=worker.name, pod=worker.pod, fate=fate, jobs=len(settled.jobs))
        pod = deleted.get(worker.uid) or self._pods.objects.get(worker.pod)
        self._told(settled, None if pod is None else (pod["metadata"].get("labels") or {}).get(self._pool_label))


def _fate(pod: Object) -> Any:
    """What of a pod a verdict may depend on. OperatorProbes and addresses change more often."""
    status = pod.get("status", {})
    containers = [
        (one.get("name"), one.get("restartCount"), one.get("state"), one.get("lastState"))
        for one in status.get("containerStatuses") or ()
    ]
    disrupted = [one for one in status.get("conditions") or () if one.get("type") == "DisruptionTarget"]
    return status.get("phase"), status.get("reason"), containers, disrupted, pod["metadata"].get("deletionTimestamp")
