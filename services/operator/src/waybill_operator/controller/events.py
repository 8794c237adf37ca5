"""Kubernetes Events: what a person wants to see with `kubectl describe`.

They may be lost, and the same is not said again for a while.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, Never

import structlog

from waybill.cluster import ClusterApi, ClusterError
from waybill.cluster.resources import EVENTS, WORKER_POOLS
from waybill_operator.pools.pool import MANAGER, WorkerPool

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_SAID_AGAIN = 600.0
"""Seconds after which the same may be said again."""
_MOST_REMEMBERED = 2000
_MOST_WAITING = 200
_LONGEST = 1000

Type = Literal["Normal", "Warning"]


class EventRecorder:
    def __init__(self, api: ClusterApi, instance: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._instance = instance
        self._clock = clock
        self._said: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._waiting: asyncio.Queue[tuple[WorkerPool, Type, str, str, str, str]] = asyncio.Queue(_MOST_WAITING)

    def say(self, pool: WorkerPool, type_: Type, reason: str, action: str, note: str) -> None:
        """Tell it about a pool, soon. Nobody waits for it."""
        key, now = (pool.uid, reason, note), self._clock()
        if now - self._said.get(key, float("-inf")) < _SAID_AGAIN:
            return
        self._said[key] = now
        self._said.move_to_end(key)
        if len(self._said) > _MOST_REMEMBERED:
            self._said.popitem(last=False)
        log.info("event", pool=pool.name, reason=reason, note=note)
        if not self._waiting.full():
            self._waiting.put_nowait((pool, type_, reason, action, note, _now()))

    async def run(self) -> Never:
        """Send what was said."""
        while True:
            pool, type_, reason, action, note, at = await self._waiting.get()
            event = {
                "metadata": {"name": f"{pool.name}.{uuid.uuid4().hex[:16]}", "namespace": pool.namespace},
                "eventTime": at,
                "type": type_,
                "reason": reason,
                "action": action,
                "note": note[:_LONGEST],
                "regarding": {
                    "apiVersion": WORKER_POOLS.api_version,
                    "kind": WORKER_POOLS.kind,
                    "name": pool.name,
                    "namespace": pool.namespace,
                    "uid": pool.uid,
                },
                "reportingController": f"waybill.dev/{MANAGER}",
                "reportingInstance": self._instance[:128],
            }
            try:
                await self._api.create(EVENTS, event, pool.namespace)
            except ClusterError as error:
                log.debug("event_not_written", reason=reason, error=error.message)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
