"""Workers whose pod is dead give their jobs back. The operator, where there is one, does this within moments. The
janitor looks once per run, before it looks at leases, because only the cluster knows why a container died.

Outside of a cluster, or without the right to list pods, leases alone decide. A line of the log says so where workers
are in pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence

import structlog

from waybill.cluster import ClusterError, NotAllowed, Object, cluster_api
from waybill.cluster.resources import PODS
from waybill.janitor.task import Batch, Tally, TaskTools
from waybill_engine.pods.deaths import settle_dead, workers_in_pods
from waybill_engine.pods.verdicts import judge

log: structlog.stdlib.BoundLogger = structlog.get_logger()

WORKERS = "workers_in_pods"
NOT_LOOKED_AT = "workers_not_looked_at"
"""The figure of workers whose pods could not be listed."""


class Pods:
    name = "pods"
    items = "workers whose pod is dead"

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools

    async def plan(self) -> AsyncIterator[Batch]:
        # The workers before the pods: a pod is there before its worker is.
        async with self._tools.database.hot() as connection:
            workers = await workers_in_pods(connection)
        if not workers:
            return
        pods = await _list(sorted({worker.namespace for worker in workers}))
        seen = [worker for worker in workers if worker.namespace in pods]
        verdicts = [(worker, judge(worker, pods[worker.namespace].get(worker.pod))) for worker in seen]
        yield Batch(
            [(worker, verdict) for worker, verdict in verdicts if verdict.dead],
            {WORKERS: float(len(workers)), NOT_LOOKED_AT: float(len(workers) - len(seen))},
        )

    async def do(self, batch: Batch) -> Tally:
        done: Counter[str] = Counter()
        async with self._tools.database.hot() as connection:
            for settled in await settle_dead(connection, batch.items):
                worker, fate = settled.worker, settled.verdict.fate.value
                log.warning("worker_dead", worker=worker.name, pod=worker.pod, fate=fate, jobs=len(settled.jobs))
                done["workers"] += 1
                done.update(one.event for one in settled.jobs)
        return Tally(done)


async def _list(namespaces: Sequence[str]) -> Mapping[str, Mapping[str, Object]]:
    """The pods of each namespace by their names, of those that we may look into."""
    found: dict[str, dict[str, Object]] = {}
    forbidden: list[str] = []
    said = ""
    try:
        async with cluster_api("waybill-janitor") as api:
            for namespace in namespaces:
                try:
                    listed = await api.list(PODS, namespace)
                except NotAllowed as error:
                    forbidden.append(namespace)
                    said = error.message
                else:
                    found[namespace] = {_name(pod): pod for pod in listed.items}
    except ClusterError as error:  # not in a cluster, or it does not answer
        log.info("leases_decide", why=error.message)
        return found
    if forbidden:
        log.info("leases_decide", namespaces=forbidden, why=said)
    return found


def _name(pod: Object) -> str:
    return str(pod["metadata"]["name"])
