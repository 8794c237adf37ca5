"""The chart looks at the cluster before it installs what a cluster can have only once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.chart import MINIMAL, merged
from support.cluster import Cluster, Object
from support.helm import CHART

METRICS_API = "v1beta1.external.metrics.k8s.io"


@pytest.fixture
def values(tmp_path: Path) -> Path:
    return tmp_path / "values.json"


@pytest.fixture
def foreign_metrics_api(cluster: Cluster) -> Iterator[None]:
    """Somebody else's. It leads nowhere, so it must not stay: it would keep namespaces from being deleted."""
    spec = {
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "keda", "name": "keda-operator-metrics-apiserver"},
    }
    item: Object = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": spec}
    cluster.create({**item, "metadata": {"name": METRICS_API}})
    yield
    cluster.delete("apiservice", METRICS_API)


@pytest.fixture
def foreign_definition(cluster: Cluster) -> Iterator[None]:
    """The definition of WorkerPool, from another release."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    owner = {"meta.helm.sh/release-name": "first", "meta.helm.sh/release-namespace": "papers"}
    cluster.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "workerpools.waybill.dev", "annotations": owner},
            "spec": {
                "group": "waybill.dev",
                "scope": "Namespaced",
                "names": {"kind": "WorkerPool", "plural": "workerpools"},
                "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
            },
        }
    )
    yield
    cluster.delete("crd", "workerpools.waybill.dev")


@pytest.mark.usefixtures("foreign_metrics_api")
def test_a_metrics_api_of_somebody_else_is_not_taken_over(cluster: Cluster, namespace: str, values: Path) -> None:
    said = refusal(cluster, namespace, values, {})
    assert "this cluster's belongs to keda/keda-operator-metrics-apiserver" in said
    assert "set autoscaling.metricsSource=keda" in said
    for source in ("keda", "prometheus-adapter", "cpu", "none"):
        assert install(cluster, namespace, values, {"autoscaling": {"metricsSource": source}, **no_definition(source)})


@pytest.mark.usefixtures("foreign_definition")
def test_a_definition_of_another_release_is_used_and_not_taken_over(
    cluster: Cluster, namespace: str, values: Path
) -> None:
    said = refusal(cluster, namespace, values, {})
    assert "the release papers/first has brought it. Set crds.install=false" in said
    assert install(cluster, namespace, values, {"crds": {"install": False}})


def no_definition(source: str) -> dict[str, Any]:
    """KEDA's kinds are not in this cluster, so nothing of it can be installed."""
    return {"worker": {"enabled": False}} if source == "keda" else {}


def install(cluster: Cluster, namespace: str, file: Path, values: dict[str, Any]) -> str:
    """As far as the API server would let it; nothing is changed."""
    file.write_text(json.dumps(merged(MINIMAL, values)))
    return cluster.helm(
        "install", "waybill", str(CHART), f"--values={file}", f"--namespace={namespace}", "--dry-run=server"
    )


def refusal(cluster: Cluster, namespace: str, file: Path, values: dict[str, Any]) -> str:
    with pytest.raises(AssertionError) as refused:
        install(cluster, namespace, file, values)
    return str(refused.value)
