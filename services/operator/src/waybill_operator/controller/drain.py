"""The end of a pool: its workers finish or release their jobs, and only then does it go."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from waybill.cluster import ClusterApi, Informer, NoSuchObject, Object
from waybill.cluster.resources import AUTOSCALERS, DEPLOYMENTS
from waybill_operator.controller.events import EventRecorder
from waybill_operator.controller.owned_objects import OwnedObjects
from waybill_operator.controller.pool_adoption import let_go
from waybill_operator.pools.pool import FINALIZER, POOL_LABEL, WorkerPool, workload_name

_MARGIN = 30.0
"""Seconds beyond their grace in which pods may disappear."""
_LOOK_AGAIN = 5.0
_ENDED = ("Succeeded", "Failed")


class Drain:
    def __init__(
        self,
        api: ClusterApi,
        owned: OwnedObjects,
        pods: Informer,
        events: EventRecorder,
        prefix: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._owned = owned
        self._pods = pods
        self._events = events
        self._prefix = prefix
        self._clock = clock
        self._since: dict[str, float] = {}
        """When we first saw that a pool is to go, by its uid. The server's clock may not be ours."""

    async def step(self, pool: WorkerPool) -> float | None:
        """Do what can be done now. Returns in how many seconds to look again; None if it is over."""
        if FINALIZER not in pool.finalizers:
            return None
        since = self._since.setdefault(pool.uid, self._clock())
        name = workload_name(self._prefix, pool.name)
        # First of all, or it would scale the pool up again.
        await self._owned.remove(pool, AUTOSCALERS, name)
        deployment = self._owned.find(DEPLOYMENTS, name)
        grace = 30.0
        if deployment is not None and pool.owns(deployment):
            grace = float(deployment["spec"]["template"]["spec"].get("terminationGracePeriodSeconds") or 30)
            await self._stop(pool, deployment)
        left = self._left(pool)
        late = self._clock() - since > grace + _MARGIN
        if left and not late:
            self._events.say(pool, "Normal", "Draining", "Drain", "The workers finish or release their jobs.")
            return _LOOK_AGAIN
        if left:
            self._events.say(
                pool,
                "Warning",
                "DrainTimedOut",
                "Drain",
                f"{len(left)} pods did not end within {grace:.0f} s: {', '.join(left[:5])}. Their jobs are released"
                " when their leases end.",
            )
        else:
            self._events.say(pool, "Normal", "Drained", "Drain", "All workers have stopped.")
        with contextlib.suppress(NoSuchObject):
            await let_go(self._api, pool)
        self._since.pop(pool.uid, None)
        self._owned.forget(name)
        return None

    def left(self, pool: WorkerPool) -> int:
        """How many of its pods have not ended."""
        return len(self._left(pool))

    async def _stop(self, pool: WorkerPool, deployment: Object) -> None:
        if deployment["spec"].get("replicas") != 0:
            name = deployment["metadata"]["name"]
            try:
                await self._api.patch(DEPLOYMENTS, name, pool.namespace, {"spec": {"replicas": 0}})
            except NoSuchObject:
                return

    def _left(self, pool: WorkerPool) -> list[str]:
        return [
            name
            for name, pod in self._pods.objects.items()
            if (pod["metadata"].get("labels") or {}).get(POOL_LABEL) == pool.name
            and pod.get("status", {}).get("phase") not in _ENDED
        ]
