"""Pools and templates as tests write them."""

from __future__ import annotations

from typing import Any

from waybill.cluster import Object
from waybill_operator.pools.pool import WorkerPool

PREFIX = "rel-waybill"

TEMPLATE: Object = {
    "metadata": {
        "labels": {
            "app.kubernetes.io/name": "waybill",
            "app.kubernetes.io/instance": "rel",
            "app.kubernetes.io/component": "worker",
            "app.kubernetes.io/version": "0.2.0",
        },
        "annotations": {"checksum/config": "abc"},
    },
    "spec": {
        "terminationGracePeriodSeconds": 60,
        "serviceAccountName": "rel-waybill-worker",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001},
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        "containers": [
            {
                "name": "worker",
                "image": "example/waybill-worker:0.2.0",
                "env": [
                    {"name": "WAYBILL_DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}},
                    {"name": "WAYBILL_WORKER_CONCURRENCY", "value": "3"},
                ],
                "resources": {"requests": {"cpu": "100m"}},
                "securityContext": {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            },
            {"name": "sidecar", "image": "example/sidecar:1"},
        ],
    },
}


def pool(name: str = "default", spec: Any = None, **metadata: Any) -> WorkerPool:
    return WorkerPool(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-of-{name}",
                "resourceVersion": "1",
                "generation": 3,
                **metadata,
            },
            "spec": spec or {},
        }
    )
