"""A release in the tests' own control plane, whose operator and migration run as processes of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg

from support.cluster import Cluster, Object
from support.control_plane import ControlPlane
from support.patience import wait_until
from support.pod_environment import ANNOTATION
from support.process_node import PodRun, ProcessNode
from support.release import Release
from waybill_engine import NewJob, enqueue_many
from waybill_engine.kinds import SELFTEST

T = TypeVar("T")

PROCESS: Object = {"podAnnotations": {ANNOTATION: "true"}}
"""A component's values, for pods that run as processes of this machine instead of being played by kwok."""

REAL: Object = {"operator": PROCESS, "migration": PROCESS}
"""The operator and the migration run. Of the other pods, admission and the scheduler see all there is to see."""

METRICS_API = "v1beta1.external.metrics.k8s.io"


@dataclass(frozen=True)
class TriedRelease:
    release: Release
    plane: ControlPlane
    node: ProcessNode
    database_url: str

    @property
    def cluster(self) -> Cluster:
        return self.release.cluster

    @property
    def namespace(self) -> str:
        return self.release.namespace

    @property
    def account(self) -> str:
        """The operator's name in the audit log."""
        name = self.release.get("deployment", "-operator")["spec"]["template"]["spec"]["serviceAccountName"]
        return f"system:serviceaccount:{self.namespace}:{name}"

    def pool(self, name: str = "default") -> Object:
        return self.cluster.get("workerpool", name, self.namespace)

    def apply_pool(self, name: str, **spec: Any) -> Object:
        return self.cluster.apply(pool(name, **spec), self.namespace)

    def until_pool(self, name: str, condition: str, status: str = "True", within: float = 60) -> None:
        self.cluster.wait(
            f"condition={condition}={status}", f"workerpool/{name}", namespace=self.namespace, within=within
        )

    def replicas(self, deployment: str = "waybill-worker") -> int:
        count: int = self.cluster.get("deployment", deployment, self.namespace)["spec"]["replicas"]
        return count

    def operators(self) -> list[PodRun]:
        """The operator's pods that run here and are ready."""
        pods = [pod["metadata"]["name"] for pod in self.release.pods("operator")]
        return [self.node.pod(self.namespace, name) for name in pods]

    def leader(self) -> PodRun:
        """The operator that holds the Lease."""
        found: list[PodRun] = []

        def held() -> bool:
            lease = self.cluster.find("lease", "waybill-operator", self.namespace)
            holder = str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")
            found[:] = [each for each in self.operators() if holder.startswith(f"{each.name}_")]
            return bool(found)

        wait_until(held, "an operator leads", every=0.2)
        return found[0]

    def serve_metrics_from(self, operator: PodRun) -> None:
        """Lead the API server to the metrics API of this operator, where the service's address would lead to a pod."""
        service = {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}
        self.cluster.patch("service", "waybill-operator", {"spec": service}, self.namespace)
        port = {"spec": {"service": {"port": operator.ports[8443]}}}
        self.cluster.patch("apiservice", METRICS_API, port)
        self.cluster.wait("condition=Available", f"apiservice/{METRICS_API}")

    def enqueue(self, count: int, steps: int = 1) -> None:
        """Enqueue selftests, which nobody runs unless a test starts workers."""
        payload = {"steps": steps, "seconds_per_step": 0.2}
        jobs = [NewJob(SELFTEST, "acme", payload) for _ in range(count)]

        async def put(connection: Any) -> None:
            async with connection.transaction():
                await enqueue_many(connection, jobs)

        self.sql(put)

    def sql(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Call a function with a connection to the database, from a test without an event loop."""

        async def connected() -> T:
            connection = await asyncpg.connect(self.database_url)
            try:
                return await work(connection)
            finally:
                await connection.close()

        return asyncio.run(connected())

    def requests(self, user: str) -> list[Object]:
        """What this account has asked the API server for, and was answered."""
        events = [json.loads(line) for line in self.plane.audit_log.read_text().splitlines()]
        return [event for event in events if event["user"]["username"] == user]


def pool(name: str, **spec: Any) -> Object:
    return {"apiVersion": "waybill.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": name}, "spec": spec}


@contextmanager
def installed(release: Release, plane: ControlPlane, node: ProcessNode, database_url: str) -> Iterator[TriedRelease]:
    """Install the release, and let its metrics API be found if it has one."""
    release.install("--wait")
    tried = TriedRelease(release, plane, node, database_url)
    if release.find("service", "-operator"):
        tried.serve_metrics_from(tried.leader())
    yield tried
