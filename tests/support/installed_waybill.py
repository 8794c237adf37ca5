"""Waybill in a real cluster, used as its users do: helm, kubectl, HTTP with an API key."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.cluster import Cluster, Object, Refused
from support.port_forward import PortForward
from support.real_cluster import RealCluster
from support.release import Release

_JAEGER = {
    "service": {
        "extensions": ["jaeger_storage", "jaeger_query"],
        "pipelines": {"traces": {"receivers": ["otlp"], "processors": [], "exporters": ["jaeger_storage_exporter"]}},
        "telemetry": {"metrics": {"level": "none"}},
    },
    "extensions": {
        "jaeger_storage": {"backends": {"memory": {"memory": {"max_traces": 100000}}}},
        "jaeger_query": {"storage": {"traces": "memory"}, "http": {"endpoint": "0.0.0.0:16686"}},
    },
    "receivers": {"otlp": {"protocols": {"http": {"endpoint": "0.0.0.0:4318"}}}},
    "exporters": {"jaeger_storage_exporter": {"trace_storage": "memory"}},
}
_SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 10001,
    "seccompProfile": {"type": "RuntimeDefault"},
}
# In a worker's image, with the worker's rights: what a producer beside the API would do.
_ENQUEUE = """
import asyncio, os, sys
import asyncpg
from waybill_engine import NewJob, enqueue_many
from waybill_engine.kinds import SELFTEST

async def main(count, steps):
    connection = await asyncpg.connect(os.environ["WAYBILL_DATABASE_URL"])
    payload = {"steps": steps, "seconds_per_step": 0.2}
    async with connection.transaction():
        await enqueue_many(connection, [NewJob(SELFTEST, "flood", payload) for _ in range(count)])
asyncio.run(main(*map(int, sys.argv[1:])))
"""


class InstalledWaybill:
    """A running release."""

    def __init__(self, release: Release, real: RealCluster) -> None:
        self.release = release
        self.real = real
        self.cluster = release.cluster
        self.namespace = release.namespace
        data = release.get("secret", "-admin-key")["data"]["api-key"]
        bearer = {"Authorization": f"Bearer {base64.b64decode(data).decode()}"}
        self.api = self.cluster.forward(f"service/{release.name}-api", 8080, self.namespace, headers=bearer)

    def upload(self, name: str, pdf: bytes) -> str:
        """Upload a document and return its job's id. The same document again is the same job."""
        answer = self.api.request("POST", "/api/upload", files={"file": (name, pdf, "application/pdf")})
        assert answer.status_code in (200, 201), answer.text
        job_id: str = answer.json()["job"]["id"]
        return job_id

    def jobs(self) -> list[Object]:
        """All jobs of the key's tenant."""
        answer = self.api.request("GET", "/api/jobs", params={"limit": 500})
        assert answer.status_code == 200, answer.text
        found: list[Object] = answer.json()["jobs"]
        return found

    def flood(self, jobs: int, seconds: float) -> None:
        """Enqueue jobs of this length."""
        pod = self.workers()[0]["metadata"]["name"]
        program = ["python", "-c", _ENQUEUE, str(jobs), str(max(1, round(seconds / 0.2)))]
        self.cluster.kubectl("exec", pod, "--container=worker", f"--namespace={self.namespace}", "--", *program)

    def rows(self, query: str) -> list[list[str]]:
        """What the database answers, as text."""
        program = [
            "psql",
            "--username=waybill",
            "--dbname=waybill",
            "--no-align",
            "--tuples-only",
            "--field-separator=|",
        ]
        text = self.cluster.kubectl(
            "exec",
            f"{self.release.name}-postgres-0",
            f"--namespace={self.namespace}",
            "--",
            *program,
            f"--command={query}",
        )
        return [line.split("|") for line in text.splitlines() if line]

    def workers(self) -> list[Object]:
        """The pods of workers that are not about to go."""
        return self.release.pods("worker")

    def ready_workers(self) -> list[Object]:
        return [pod for pod in self.workers() if is_ready(pod)]

    def pool(self) -> Object:
        return self.cluster.get("workerpool", "default", self.namespace)

    def jaeger(self) -> PortForward:
        return self.cluster.forward("service/jaeger", 16686, self.namespace)


_SERVICES = ("operator", "worker", "api", "gateway", "migration")


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@contextmanager
def installed_waybill(cluster: Cluster, real: RealCluster, folder: Path, *, keep: bool) -> Iterator[InstalledWaybill]:
    """Install a release into a namespace of its own, and take away both afterwards."""
    with contextlib.ExitStack() as leaving:
        namespace = f"waybill-e2e-{secrets.token_hex(3)}"
        if keep:
            cluster.namespace(namespace).__enter__()
        else:
            leaving.enter_context(cluster.namespace(namespace))
            leaving.callback(real.forget, namespace)
        for claim in ("waybill-storage", "data-waybill-postgres-0"):
            if volume := real.volume(namespace, claim):
                cluster.create(volume)
                if not keep:
                    leaving.callback(cluster.delete, "persistentvolume", volume["metadata"]["name"], wait=False)
        if real.jaeger:
            start_jaeger(cluster, namespace, real.jaeger)
        theirs = cluster.find("crd", "workerpools.waybill.dev") is not None
        release = Release(cluster, namespace, folder, {**_values(real), "crds": {"install": not theirs, "keep": False}})
        try:
            release.install("--wait", within=600)
            running = InstalledWaybill(release, real)
            try:
                yield running
            finally:
                running.api.close()
        except BaseException:
            print(describe(release))
            raise
        if not keep:
            release.uninstall(within=600)


def describe(release: Release) -> str:
    """What a person would look at if something is wrong."""
    parts = []
    for what in (
        ("get", "pods,workerpools,hpa,deployments,apiservices", "-o", "wide"),
        ("get", "events", "--sort-by=.lastTimestamp"),
        *(("logs", f"--selector=app.kubernetes.io/component={each}", "--tail=60", "--prefix") for each in _SERVICES),
    ):
        with contextlib.suppress(Refused):
            parts.append(release.cluster.kubectl(*what, f"--namespace={release.namespace}"))
    return "\n".join(parts)


def start_jaeger(cluster: Cluster, namespace: str, image: str) -> None:
    """Run a Jaeger that keeps spans in memory."""
    labels = {"app": "jaeger"}
    metadata = {"name": "jaeger", "labels": labels}
    container = {
        "name": "jaeger",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["--config=/etc/jaeger/config.json"],
        "securityContext": _SAFE,
        "ports": [{"containerPort": 16686}, {"containerPort": 4318}],
        "readinessProbe": {"tcpSocket": {"port": 16686}, "periodSeconds": 2},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/jaeger"}],
    }
    spec = {"containers": [container], "volumes": [{"name": "config", "configMap": {"name": "jaeger"}}]}
    items: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.json": json.dumps(_JAEGER)}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {
                "selector": labels,
                "ports": [{"name": "query", "port": 16686}, {"name": "otlp", "port": 4318}],
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        },
    ]
    for item in items:
        cluster.create(item, namespace)
    cluster.wait("condition=Available", "deployment/jaeger", namespace=namespace, within=300)


def _values(real: RealCluster) -> Object:
    """Small requests, because the whole product and a fleet of workers may have to fit on one small node."""
    little = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}
    volume = {"storageClass": "-"} if real.host_path else {"storageClass": real.storage_class}
    return {
        "image": {"registry": real.registry, "tag": real.tag, "pullPolicy": "IfNotPresent"},
        "postgres": {"image": real.postgres, "resources": little, "volume": volume},
        "storage": {"volume": volume},
        "telemetry": {"otlpEndpoint": "http://jaeger:4318"} if real.jaeger else {},
        # There may be nothing in the cluster that measures CPU.
        "api": {
            "autoscaling": {"enabled": False},
            "replicas": 2,
            "resources": little,
            "terminationGracePeriodSeconds": 15,
        },
        "gateway": {"autoscaling": {"enabled": False}, "replicas": 1, "resources": little, "processes": 2},
        "operator": {"resources": little},
        "migration": {"resources": little},
        "janitor": {"resources": little},
        "worker": {
            "resources": little,
            "concurrency": 4,
            "autoscaling": {
                "minReplicas": 2,
                "maxReplicas": 6,
                "drainTargetSeconds": 30,
                "behavior": {
                    "scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]},
                    "scaleDown": {
                        "stabilizationWindowSeconds": 15,
                        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
                    },
                },
            },
        },
    }
