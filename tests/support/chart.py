"""What the tests know of the chart: the installations that people make of it, and how to walk over rendered objects."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml  # type: ignore[import-untyped]

Object = dict[str, Any]
Values = dict[str, Any]

MINIMAL: Values = {"image": {"registry": "registry.test/team"}}
EXTERNAL_DATABASE: Values = {
    "postgres": {"enabled": False},
    "database": {"existingSecret": "my-database", "urlKey": "uri", "pgbouncer": True},
    "migration": {"existingSecret": "my-owner"},
}
S3: Values = {
    "storage": {"url": "s3://papers/prod?endpoint=https://s3.test&region=eu-1", "existingSecret": "my-bucket"},
}
HA: Values = {
    **EXTERNAL_DATABASE,
    **S3,
    "api": {
        "autoscaling": {"minReplicas": 3, "maxReplicas": 12},
        "disruptionBudget": {"maxUnavailable": "25%"},
        "topologySpreadConstraints": [
            {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        ],
    },
    "worker": {"autoscaling": {"minReplicas": 3, "maxReplicas": 60}, "gatewayCalls": 120},
    "gateway": {"autoscaling": {"minReplicas": 3, "maxReplicas": 20}},
    "pods": {"priorityClassName": "important"},
}
_EXTRAS: Values = {
    "podLabels": {"team": "papers"},
    "podAnnotations": {"example.com/note": "yes"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "papers", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "important",
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.{{ .Release.Namespace }}:3128"}],
    "extraEnvFrom": [{"configMapRef": {"name": "more", "optional": True}}],
    "extraVolumes": [{"name": "certificates", "configMap": {"name": "certificates", "optional": True}}],
    "extraVolumeMounts": [{"name": "certificates", "mountPath": "/etc/ssl/more"}],
    "extraEgress": [{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}],
}
EVERYTHING: Values = {
    "commonLabels": {"owner": "finance"},
    "commonAnnotations": {"example.com/ticket": "42"},
    "image": {"registry": "registry.test/team", "tag": "1.2.3", "pullSecrets": ["registry"]},
    "pods": {"labels": {"net": "inner"}, "annotations": {"example.com/scan": "true"}},
    "settings": {"WAYBILL_PDF_TTL_DAYS": 14, "WAYBILL_LOG_FILE_MAX_BYTES": 200000000, "WAYBILL_ACCESS_LOG": False},
    "telemetry": {
        "otlpEndpoint": "http://collector.observability:4318",
        "existingSecret": "collector",
        "sampleRatio": 0.1,
        "traceUrlTemplate": "https://traces.test/{trace_id}",
    },
    "api": {
        **_EXTRAS,
        "hosts": ["papers.test"],
        "trustedProxies": ["10.0.0.0/8"],
        "corsOrigins": ["https://erp.test"],
        "service": {"type": "NodePort", "port": 80, "annotations": {"example.com/lb": "inner"}},
        "autoscaling": {
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 80}},
                }
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 600}},
        },
    },
    "worker": {
        **_EXTRAS,
        "queues": ["default", "slow"],
        "kinds": ["convert_pdf"],
        "autoscaling": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 600}}},
    },
    "gateway": {**_EXTRAS, "mappingsConfigMap": "mappings"},
    "operator": {**_EXTRAS, "tls": {"certManager": True}},
    "janitor": _EXTRAS,
    "migration": {**_EXTRAS, "activeDeadlineSeconds": 3600},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "hosts": ["papers.test"],
        "tls": [{"secretName": "papers-tls", "hosts": ["papers.test"]}],
    },
    "httpRoute": {
        "enabled": True,
        "parentRefs": [{"name": "public", "namespace": "gateways"}],
        "hostnames": ["papers.test"],
        "timeouts": {"request": "310s"},
    },
    "networkPolicies": {
        "callers": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}],
        "otlp": {"peers": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "observability"}}}]},
    },
    "monitoring": {
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "rules": {"enabled": True, "docs": "https://wiki.test/waybill/"},
        "dashboard": {"enabled": True, "annotations": {"grafana_folder": "Papers"}},
    },
    "extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}, "data": {"in": "{{ .Release.Name }}"}},
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: certificates\n",
    ],
}

MATRIX: dict[str, Values] = {
    "minimal": {},
    "everything": EVERYTHING,
    "external database": EXTERNAL_DATABASE,
    "address of a database": {
        "postgres": {"enabled": False},
        "database": {"url": "postgresql://waybill:secret@db.test/waybill"},
    },
    "S3": S3,
    "Azure with a key": {"storage": {"url": "az://papers?account=acme", "keyId": "acme", "secret": "c2VjcmV0"}},
    "shared volume": {"storage": {"volume": {"accessModes": ["ReadWriteMany"], "storageClass": "nfs"}}},
    "a claim of one's own": {"storage": {"volume": {"existingClaim": "papers"}}},
    "HA": HA,
    "KEDA": {"autoscaling": {"metricsSource": "keda"}, "worker": {"queues": ["slow"], "kinds": ["convert_pdf"]}},
    "KEDA without the operator": {
        **EXTERNAL_DATABASE,
        "operator": {"enabled": False},
        "autoscaling": {"metricsSource": "keda", "keda": {"existingSecret": "keda-database"}},
    },
    "Prometheus adapter": {"autoscaling": {"metricsSource": "prometheus-adapter"}},
    "CPU": {"autoscaling": {"metricsSource": "cpu"}},
    "CPU without the operator": {"operator": {"enabled": False}, "autoscaling": {"metricsSource": "cpu"}},
    "fixed": {
        "autoscaling": {"metricsSource": "none"},
        "api": {"autoscaling": {"enabled": False}},
        "gateway": {"autoscaling": {"enabled": False}},
    },
    "fixed without the operator": {"operator": {"enabled": False}, "autoscaling": {"metricsSource": "none"}},
    "no network policies": {"networkPolicies": {"enabled": False}},
    "secrets of one's own": {
        "secrets": {"existingSecret": "mine", "gatewayKey": "gw"},
        "adminKey": {"existingSecret": "mine", "key": "admin"},
    },
    "little": {
        "worker": {"enabled": False},
        "janitor": {"enabled": False},
        "migration": {"enabled": False},
        "adminKey": {"enabled": False},
        "postgres": {"volume": {"enabled": False}},
        "pods": {"spread": False},
        "api": {"serviceAccount": {"create": False}, "disruptionBudget": {"enabled": False}, "preStopSeconds": 0},
    },
    "a certificate of somebody": {
        "operator": {"tls": {"certManager": True, "issuerRef": {"kind": "ClusterIssuer", "name": "inner"}}}
    },
}
"""Installations by name. Each lacks only the registry."""

WORKLOADS = ("Deployment", "StatefulSet", "Job", "CronJob", "Pod")


def with_registry(values: Values) -> Values:
    return {**MINIMAL, **values}


def merged(*values: Mapping[str, Any]) -> Values:
    """Values on top of each other, as several files are."""
    result: Values = {}
    for each in values:
        for name, value in each.items():
            known = result.get(name)
            both = isinstance(value, dict) and isinstance(known, dict)
            result[name] = merged(known, value) if both and known is not None else deepcopy(value)
    return result


@dataclass(frozen=True)
class PodTemplate:
    """The pods of a workload."""

    owner: str
    metadata: Object
    spec: Object

    @property
    def component(self) -> str:
        return str(self.labels["app.kubernetes.io/component"])

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.metadata["labels"])

    @property
    def containers(self) -> list[Object]:
        return [*self.spec.get("initContainers", ()), *self.spec["containers"]]

    @property
    def main(self) -> Object:
        return dict(self.spec["containers"][0])


class Rendered:
    """The objects of one installation."""

    def __init__(self, objects: list[Object]) -> None:
        self.objects = objects

    def of(self, kind: str) -> dict[str, Object]:
        """All of a kind, by name."""
        return {one["metadata"]["name"]: one for one in self.objects if one["kind"] == kind}

    def one(self, kind: str, name: str) -> Object:
        return self.of(kind)[name]

    @cached_property
    def pods(self) -> list[PodTemplate]:
        """The pods of all workloads, and those that the operator makes from its configuration."""
        found = [self._pod(one) for one in self.objects if one["kind"] in WORKLOADS]
        if (template := self.operator_file("worker-template.yaml")) is not None:
            found.append(PodTemplate("the operator's workers", template["metadata"], template["spec"]))
        return found

    def pods_of(self, component: str) -> list[PodTemplate]:
        return [pod for pod in self.pods if pod.component == component]

    def operator_file(self, name: str) -> Any:
        """A file of the operator's configuration; None if there is no such file."""
        for config in self.of("ConfigMap").values():
            if name in config.get("data", {}):
                return yaml.safe_load(config["data"][name])
        return None

    def secret(self, name: str, key: str) -> str:
        return base64.b64decode(self.one("Secret", name)["data"][key]).decode()

    @staticmethod
    def _pod(owner: Object) -> PodTemplate:
        spec = owner["spec"]
        if owner["kind"] == "Pod":
            return PodTemplate(f"Pod {owner['metadata']['name']}", owner["metadata"], spec)
        if owner["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        template = spec["template"]
        return PodTemplate(f"{owner['kind']} {owner['metadata']['name']}", template["metadata"], template["spec"])


Installation = Callable[[str], Rendered]
"""Renders one of the matrix, once in a run."""
Render = Callable[..., Rendered]
"""Renders any values."""


def secret_references(pod: PodTemplate) -> Iterator[tuple[str, str | None]]:
    """(secret, key) of everything that a pod reads from secrets; the key is None where all of it is read."""
    for container in pod.containers:
        for variable in container.get("env", ()):
            if reference := variable.get("valueFrom", {}).get("secretKeyRef"):
                yield reference["name"], reference["key"]
    for volume in pod.spec.get("volumes", ()):
        if secret := volume.get("secret"):
            items = secret.get("items", [{"key": None}])
            yield from ((secret["secretName"], item["key"]) for item in items)


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels."""
    if any(labels.get(name) != value for name, value in selector.get("matchLabels", {}).items()):
        return False
    return all(
        expression["operator"] == "In" and labels.get(expression["key"]) in expression["values"]
        for expression in selector.get("matchExpressions", ())
    )
