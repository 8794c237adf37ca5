"""Marks busy pods, so that scaling down takes the idle ones, and no node is emptied under a running job.

A pod is patched when it becomes busy or idle, never for each job. Right before a pool gets smaller, its pods are marked
by how many jobs they run: whoever has fewest goes first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Never

import structlog

from waybill.cluster import ClusterApi, ClusterError, Informer, NoSuchObject, Object
from waybill.cluster.resources import PODS
from waybill.failures import classify
from waybill_operator.pools.overrides import DELETION_COST, DO_NOT_DISRUPT, SAFE_TO_EVICT
from waybill_operator.pools.pool import POOL_LABEL

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_BUSY: Mapping[str, str] = {DO_NOT_DISRUPT: "true", SAFE_TO_EVICT: "false"}

_LOOK_EVERY = 5.0
_IDLE_FOR = 20.0
"""Seconds without a job after which a pod counts as idle. Between two jobs it is not."""
_AT_ONCE = 5

Jobs = Callable[[], Awaitable[Mapping[str, int]]]
"""How many jobs each pod runs, by its uid. It may raise."""


class PodCosts:
    def __init__(
        self,
        api: ClusterApi,
        pods: Informer,
        jobs: Jobs,
        *,
        look_every: float = _LOOK_EVERY,
        idle_for: float = _IDLE_FOR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._pods = pods
        self._jobs = jobs
        self._look_every = look_every
        self._idle_for = idle_for
        self._clock = clock
        self._busy_at: dict[str, float] = {}
        self._trouble = ""
        # Marks follow one another: one that was decided on older counts must not arrive last.
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> Never:
        """Keep the marks true, for ever."""
        await self._pods.wait_until_listed()
        while True:
            async with self._one_at_a_time:
                jobs = await self._count()
                if jobs is not None:
                    await self._mark(self._marked_pods(), jobs)
            await asyncio.sleep(self._look_every)

    async def mark_exactly(self, pool: str) -> None:
        """Mark the pods of a pool by what they run at this moment, for it is about to get smaller.

        If nobody knows, the marks stay as they are: a person who scales down during an outage wants it done.
        """
        async with self._one_at_a_time:
            jobs = await self._count()
            if jobs is not None:
                pods = [pod for pod in self._marked_pods() if pod["metadata"]["labels"][POOL_LABEL] == pool]
                await self._mark(pods, jobs, exactly=True)

    async def _count(self) -> Mapping[str, int] | None:
        try:
            jobs = await self._jobs()
        except Exception as error:  # noqa: BLE001 - told, and tried again
            if (said := classify(error).message) != self._trouble:
                log.warning("busy_pods_not_known", error=said)
                self._trouble = said
            return None
        self._trouble = ""
        now = self._clock()
        self._busy_at = {uid: at for uid, at in self._busy_at.items() if now - at <= self._idle_for}
        self._busy_at |= {uid: now for uid, running in jobs.items() if running}
        return jobs

    def _marked_pods(self) -> list[Object]:
        return [
            pod
            for pod in self._pods.objects.values()
            if POOL_LABEL in (pod["metadata"].get("labels") or {}) and "deletionTimestamp" not in pod["metadata"]
        ]

    async def _mark(self, pods: list[Object], jobs: Mapping[str, int], *, exactly: bool = False) -> None:
        places = asyncio.Semaphore(_AT_ONCE)

        async def patch(pod: Object, change: Mapping[str, str | None]) -> None:
            async with places:
                name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
                # With the uid: a later pod of the same name is not meant.
                metadata = {"uid": pod["metadata"]["uid"], "annotations": dict(change)}
                try:
                    await self._api.patch(PODS, name, namespace, {"metadata": metadata})
                except NoSuchObject:
                    return
                except ClusterError as error:
                    log.info("pod_not_marked", pod=name, error=error.message)

        changes = [(pod, self._change(pod, jobs, exactly=exactly)) for pod in pods]
        await asyncio.gather(*(patch(pod, change) for pod, change in changes if change))

    def _change(self, pod: Object, jobs: Mapping[str, int], *, exactly: bool) -> Mapping[str, str | None]:
        """The annotations that must change; nothing if the marks say enough."""
        uid, now = pod["metadata"]["uid"], pod["metadata"].get("annotations") or {}
        running = jobs.get(uid, 0)
        if exactly and not running:
            self._busy_at.pop(uid, None)
        busy = uid in self._busy_at
        if not exactly and busy == (DELETION_COST in now):
            return {}
        wanted: dict[str, str | None] = (
            {DELETION_COST: str(max(running, 1)), **_BUSY} if busy else dict.fromkeys((DELETION_COST, *_BUSY))
        )
        if exactly:  # what we know of the pod may be older than the mark it had a moment ago
            return wanted
        return {key: value for key, value in wanted.items() if now.get(key) != value}
