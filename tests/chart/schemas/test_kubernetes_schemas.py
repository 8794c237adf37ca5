"""The check against published schemas finds what an API server would refuse or drop in silence."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from support.kubernetes_schemas import FILE, KubernetesSchemas, kubernetes_schemas

LABELS = {"app.kubernetes.io/name": "waybill"}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "waybill-api", "labels": LABELS},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "strategy": {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "containers": [
                    {"name": "api", "image": "api", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}, "env": []}
                ]
            },
        },
    },
}


def deployment(path: str, value: object) -> dict[str, Any]:
    """The deployment with something at `path` replaced."""
    changed = copy.deepcopy(DEPLOYMENT)
    *way, last = path.split(".")
    place: Any = changed
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    place[last] = value
    return changed


CONTAINER = "spec.template.spec.containers.0"


def test_a_good_object_has_no_problems() -> None:
    assert kubernetes_schemas().problems(DEPLOYMENT) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("spec.replica", 2, "spec: Additional properties are not allowed ('replica' was unexpected)"),
        (f"{CONTAINER}.imagePullPolice", "Always", "('imagePullPolice' was unexpected)"),
        (f"{CONTAINER}.env", [{"name": "A", "value": 1}], "containers.0.env.0.value: 1 is not of type 'string'"),
        ("spec.replicas", "2", "spec.replicas: '2' is not of type 'integer'"),
        ("spec.replicas", True, "spec.replicas: True is not of type 'integer'"),
        ("spec.template", None, "spec.template: None is not of type 'object'"),
        ("spec.selector", [], "spec.selector: [] is not of type 'object'"),
        ("metadata.name", "Waybill_API", "metadata.name: 'Waybill_API' is not a name"),
        ("metadata.name", "w" * 64, "has more than 63 characters"),
        ("metadata.labels", {"app.kubernetes.io/version": "1.0+2"}, "cannot have the value '1.0+2'"),
        ("spec.template.metadata.labels", {"a": "v" * 64}, "cannot have the value"),
        ("metadata.labels", {"a b": ""}, "'a b' is not the name of a label"),
        ("apiVersion", "apps/v2", "apps/v2 has no kind Deployment"),
        ("kind", None, "no apiVersion or no kind"),
    ],
)
def test_what_a_server_would_refuse_or_drop_is_found(path: str, value: object, said: str) -> None:
    problems = kubernetes_schemas().problems(deployment(path, value))
    assert len(problems) == 1, problems
    assert said in problems[0]


def test_a_missing_field_is_found() -> None:
    without = copy.deepcopy(DEPLOYMENT)
    del without["spec"]["selector"]
    assert kubernetes_schemas().problems(without) == ["Deployment waybill-api: spec: 'selector' is a required property"]


def test_a_defined_kind_can_be_checked_too() -> None:
    schemas = KubernetesSchemas(json.loads(FILE.read_text()))
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 1},
            "format": {"type": "string", "enum": ["small", "large"]},
            "port": {"x-kubernetes-int-or-string": True},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "budget": {"type": "object", "nullable": True, "properties": {"most": {"type": "integer"}}},
        },
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.dev"},
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": {"kind": "Box", "plural": "boxes"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }
    assert schemas.problems(definition) == []
    schemas.define(definition)

    def problems(**spec: object) -> list[str]:
        return schemas.problems(
            {"apiVersion": "example.dev/v1", "kind": "Box", "metadata": {"name": "b"}, "spec": {"size": 1, **spec}}
        )

    assert problems(format="small", port="http", raw={"any": [1]}, budget=None) == []
    assert problems(size=0) == ["Box b: spec.size: 0 is less than the minimum of 1"]
    assert problems(format="tiny") == ["Box b: spec.format: 'tiny' is not one of ['small', 'large']"]
    [said] = problems(wide=1)
    assert "'wide' was unexpected" in said
    assert problems(budget={"least": 1}) != []


def test_kinds_of_others_have_what_cannot_be_left_out() -> None:
    def problems(version: str, kind: str, spec: object) -> list[str]:
        item = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
        return kubernetes_schemas().problems(item)

    monitor = {"selector": {}, "endpoints": [{"port": "metrics"}]}
    assert problems("monitoring.coreos.com/v1", "ServiceMonitor", monitor) == []
    assert problems("monitoring.coreos.com/v1", "ServiceMonitor", {"selector": {}, "endpoints": []}) != []
    assert problems("keda.sh/v1alpha1", "ScaledObject", {"scaleTargetRef": {"name": "w"}, "triggers": []}) != []
    numbers = [{"type": "postgresql", "metadata": {"targetQueryValue": 1}}]
    [said] = problems("keda.sh/v1alpha1", "ScaledObject", {"scaleTargetRef": {"name": "w"}, "triggers": numbers})
    assert said == "ScaledObject x: spec.triggers.0.metadata.targetQueryValue: 1 is not of type 'string'"


def test_the_file_is_small_and_has_what_the_chart_uses() -> None:
    assert FILE.stat().st_size < 2**20
    kinds = {f"{version}/{kind}" for version, kind in kubernetes_schemas().kinds}
    needed = """
        v1/ConfigMap v1/PersistentVolumeClaim v1/Pod v1/Secret v1/Service v1/ServiceAccount apps/v1/Deployment
        apps/v1/StatefulSet batch/v1/CronJob batch/v1/Job autoscaling/v2/HorizontalPodAutoscaler
        policy/v1/PodDisruptionBudget networking.k8s.io/v1/Ingress networking.k8s.io/v1/NetworkPolicy
        rbac.authorization.k8s.io/v1/ClusterRole rbac.authorization.k8s.io/v1/ClusterRoleBinding
        rbac.authorization.k8s.io/v1/Role rbac.authorization.k8s.io/v1/RoleBinding apiregistration.k8s.io/v1/APIService
        apiextensions.k8s.io/v1/CustomResourceDefinition
    """
    assert set(needed.split()) <= kinds
