"""The pool `default`, which the chart configures by a file.

A chart cannot install a custom resource beside its own definition, so the operator applies it: when it is not there,
and when the file says something new. What people change in it meanwhile stays until then, and `replicas` always does.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Never

import structlog

from waybill.cluster import ClusterApi, ClusterError, Informer, Invalid, NoSuchObject, Object
from waybill.cluster.backoff import Backoff
from waybill.cluster.resources import WORKER_POOLS
from waybill_operator.configuration import ConfigurationFolder
from waybill_operator.pools.pool import DEFAULT, OPERATOR_LABEL, WorkerPool

log: structlog.stdlib.BoundLogger = structlog.get_logger()

HASH = "waybill.dev/configured-by"
_MANAGER = "waybill-operator-default"
"""A field manager of its own: the finalizer and the status are the operator's under another name."""


class DefaultPool:
    def __init__(
        self, api: ClusterApi, pools: Informer, folder: ConfigurationFolder, namespace: str, prefix: str
    ) -> None:
        self._api = api
        self._pools = pools
        self._folder = folder
        self._namespace = namespace
        self._prefix = prefix
        self._look = asyncio.Event()
        self._waits_for_end = False

    async def run(self) -> Never:
        """Apply it now, and whenever its file changes."""
        backoff = Backoff(1.0, 60.0)
        self._folder.on_change(self._look.set)
        self._pools.on_change(self._see)
        try:
            while True:
                self._look.clear()
                try:
                    await self._settle()
                    backoff.reset()
                except Invalid as error:
                    log.error("default_pool_refused", error=error.message)
                except ClusterError as error:
                    log.warning("default_pool_not_applied", error=error.message)
                    await asyncio.sleep(backoff.next(error.retry_after))
                    continue
                await self._look.wait()
        finally:
            self._folder.off_change(self._look.set)
            self._pools.off_change(self._see)

    def _see(self, before: Object | None, after: Object | None) -> None:
        if self._waits_for_end and after is None and before is not None and before["metadata"]["name"] == DEFAULT:
            self._look.set()

    async def _settle(self) -> None:
        self._waits_for_end = False
        configuration = self._folder.current
        if configuration is None:
            return
        found = self._pools.objects.get(DEFAULT)
        pool = None if found is None else WorkerPool(found)
        made_by = None if pool is None else (pool.body["metadata"].get("annotations") or {}).get(HASH)
        if pool is not None and not pool.is_of(self._prefix):
            log.error("default_pool_of_another", operator=pool.labels[OPERATOR_LABEL])
            return
        if configuration.default_pool is None:
            if pool is not None and made_by is not None and pool.deleted_at is None:
                log.info("default_pool_no_longer_wanted")
                try:
                    await self._api.delete(WORKER_POOLS, DEFAULT, self._namespace, uid=pool.uid)
                except NoSuchObject:
                    return
            return
        if pool is not None and pool.deleted_at is not None:
            self._waits_for_end = True
            return
        spec = {name: value for name, value in configuration.default_pool.items() if name != "replicas"}
        digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
        if made_by == digest:
            return
        await self._api.apply(
            WORKER_POOLS,
            {
                "metadata": {"name": DEFAULT, "namespace": self._namespace, "annotations": {HASH: digest}},
                "spec": spec,
            },
            manager=_MANAGER,
        )
        log.info("default_pool_applied")
