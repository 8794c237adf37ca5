"""A pool is taken on before anything is made for it: with a finalizer, so that it drains, and our name on it."""

from __future__ import annotations

from waybill.cluster import ClusterApi, Object
from waybill.cluster.resources import WORKER_POOLS
from waybill_operator.pools.pool import FINALIZER, OPERATOR_LABEL, WorkerPool


def is_adopted(pool: WorkerPool, prefix: str) -> bool:
    return FINALIZER in pool.finalizers and pool.labels.get(OPERATOR_LABEL) == prefix


async def adopt(api: ClusterApi, pool: WorkerPool, prefix: str) -> Object:
    """`ChangedMeanwhile` if the pool has changed: then another operator may have it."""
    metadata = {
        "resourceVersion": pool.version,
        "labels": {OPERATOR_LABEL: prefix},
        "finalizers": [*(one for one in pool.finalizers if one != FINALIZER), FINALIZER],
    }
    return await api.patch(WORKER_POOLS, pool.name, pool.namespace, {"metadata": metadata})


async def let_go(api: ClusterApi, pool: WorkerPool) -> None:
    metadata = {
        "resourceVersion": pool.version,
        "finalizers": [one for one in pool.finalizers if one != FINALIZER],
    }
    await api.patch(WORKER_POOLS, pool.name, pool.namespace, {"metadata": metadata})
