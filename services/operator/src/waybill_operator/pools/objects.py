"""The objects that a pool consists of, made of its spec and the chart's template. Pure: nothing is asked or written."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from waybill.cluster import Object
from waybill.cluster.resources import WORKER_POOLS
from waybill_operator.pools.overrides import merged
from waybill_operator.pools.pool import MANAGER, POOL_LABEL, WorkerPool, workload_name
from waybill_operator.pools.spec import WorkerPoolSpec

CONTAINER = "worker"
METRIC = "waybill_workers_wanted"
_SELECTING = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component")
_GRACE_FOR_EXIT = 10
"""Seconds between the end of a worker's own grace and the kill: to release jobs, and to let a preStop hook run."""

DEFAULT_BEHAVIOR: Mapping[str, Object] = {
    # A burst is answered at once, by at most doubling, or by four.
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Percent", "value": 100, "periodSeconds": 15},
            {"type": "Pods", "value": 4, "periodSeconds": 15},
        ],
    },
    # A pause between two bursts stops no worker: the most that was wanted in five minutes counts.
    "scaleDown": {
        "stabilizationWindowSeconds": 300,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Percent", "value": 50, "periodSeconds": 60},
            {"type": "Pods", "value": 2, "periodSeconds": 60},
        ],
    },
}


def selector_labels(template: Object, pool: str) -> dict[str, str]:
    """The labels by which a pool's pods are found. They never change: a Deployment's selector cannot."""
    labels = template.get("metadata", {}).get("labels") or {}
    return {**{key: labels[key] for key in _SELECTING if key in labels}, POOL_LABEL: pool}


def selector_text(template: Object, pool: str) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(selector_labels(template, pool).items()))


def grace_seconds(template: Object, spec: WorkerPoolSpec) -> int:
    """How long a pod of the pool may take to end."""
    own = spec.pod_overrides.termination_grace_period_seconds
    return int(own or template.get("spec", {}).get("terminationGracePeriodSeconds") or 30)


def deployment(pool: WorkerPool, spec: WorkerPoolSpec, template: Object, prefix: str, *, replicas: int) -> Object:
    """`OverridesClash` if the pool's overrides do not fit the template."""
    return {
        "metadata": _metadata(pool, template, prefix),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector_labels(template, pool.name)},
            # A new pod must be Ready before an old one goes, so that a rolling upgrade keeps the pool's strength.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            "template": pod_template(pool, spec, template),
        },
    }


def pod_template(pool: WorkerPool, spec: WorkerPoolSpec, template: Object) -> Object:
    result = merged(template, spec.pod_overrides, CONTAINER)
    labels = result.setdefault("metadata", {}).setdefault("labels", {})
    labels[POOL_LABEL] = pool.name
    worker = next(one for one in result["spec"]["containers"] if one["name"] == CONTAINER)
    own: dict[str, str] = {
        "WAYBILL_WORKER_CONCURRENCY": str(spec.concurrency),
        "WAYBILL_WORKER_PROCESSES": str(spec.processes),
        "WAYBILL_WORKER_QUEUES": ",".join(spec.queues),
        "WAYBILL_WORKER_KINDS": ",".join(spec.kinds),
    }
    if grace := spec.pod_overrides.termination_grace_period_seconds:
        # A worker that still waits for its jobs when it is killed has released none of them.
        own["WAYBILL_SHUTDOWN_GRACE"] = str(max(grace - _GRACE_FOR_EXIT, 1))
    given = [one.model_dump(by_alias=True, exclude_unset=True) for one in spec.env]
    worker["env"] = _env(worker.get("env") or [], own, given)
    if resources := spec.resources.model_dump(exclude_unset=True):
        worker["resources"] = resources
    return result


def autoscaler(pool: WorkerPool, spec: WorkerPoolSpec, template: Object, prefix: str) -> Object | None:
    """None where somebody else scales the pool, or nobody."""
    scaling = spec.autoscaling
    if scaling.source in ("external", "none"):
        return None
    metric: Object
    if scaling.source == "cpu":
        metric = {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "container": CONTAINER,  # sidecars do none of the work
                "target": {"type": "Utilization", "averageUtilization": scaling.cpu_utilization},
            },
        }
    else:
        metric = {
            "type": "External",
            "external": {
                "metric": {"name": METRIC, "selector": {"matchLabels": {"pool": pool.name}}},
                # The metric is a number of workers, so the average over workers is 1.
                "target": {"type": "AverageValue", "averageValue": "1"},
            },
        }
    return {
        "metadata": _metadata(pool, template, prefix),
        "spec": {
            "scaleTargetRef": {"apiVersion": WORKER_POOLS.api_version, "kind": WORKER_POOLS.kind, "name": pool.name},
            "minReplicas": scaling.min_replicas,
            "maxReplicas": scaling.max_replicas,
            "metrics": [metric],
            "behavior": _behavior(scaling.behavior),
        },
    }


def disruption_budget(pool: WorkerPool, spec: WorkerPoolSpec, template: Object, prefix: str) -> Object | None:
    if not spec.disruption_budget.enabled:
        return None
    return {
        "metadata": _metadata(pool, template, prefix),
        "spec": {
            "maxUnavailable": spec.disruption_budget.max_unavailable,
            "selector": {"matchLabels": selector_labels(template, pool.name)},
            # A pod that is not ready does no work, and must not keep a node from being drained.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _metadata(pool: WorkerPool, template: Object, prefix: str) -> Object:
    labels = template.get("metadata", {}).get("labels") or {}
    return {
        "name": workload_name(prefix, pool.name),
        "namespace": pool.namespace,
        "labels": {**labels, POOL_LABEL: pool.name, "app.kubernetes.io/managed-by": MANAGER},
        "ownerReferences": [pool.owner_reference],
    }


def _behavior(given: Mapping[str, Any]) -> Object:
    """The defaults, with what the pool says in their place, field by field."""
    result: Object = {}
    for direction in ("scaleUp", "scaleDown"):
        rules = given.get(direction) or {}
        result[direction] = {**copy.deepcopy(DEFAULT_BEHAVIOR[direction]), **copy.deepcopy(rules)}
    return result


def _env(template: list[Object], own: Mapping[str, str], given: list[Object]) -> list[Object]:
    """The template's variables, then ours, then the pool's; whoever comes later wins. Each name occurs once."""
    found: dict[str, Object] = {}
    for one in [*copy.deepcopy(template), *({"name": name, "value": value} for name, value in own.items()), *given]:
        found.pop(one["name"], None)
        found[one["name"]] = one
    return list(found.values())
