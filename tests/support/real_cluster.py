"""A cluster with real nodes, which `$KUBECONFIG` names, and what the tests may use in it.

Every image is a variable, so that a cluster without a way to a registry can have its own.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.cluster import Cluster, Object

_MISSING = "{} is not set: {} (docs/testing-in-a-cluster.md)"


@dataclass(frozen=True)
class RealCluster:
    """What the environment says."""

    registry: str
    tag: str
    next_tag: str
    postgres: str
    jaeger: str
    storage_class: str
    host_path: str
    """A folder of the only node, which is this machine. Volumes are made there."""

    @staticmethod
    def from_environment() -> RealCluster:
        return RealCluster(
            registry=_given("WAYBILL_E2E_REGISTRY", "where the images are, as `image.registry` of the chart"),
            tag=_given("WAYBILL_E2E_TAG", "the tag of the images"),
            next_tag=_given("WAYBILL_E2E_NEXT_TAG", "a second tag of the same images, to upgrade to"),
            postgres=os.environ.get("WAYBILL_E2E_POSTGRES", "postgres:17"),
            jaeger=os.environ.get("WAYBILL_E2E_JAEGER", ""),
            storage_class=os.environ.get("WAYBILL_E2E_STORAGE_CLASS", ""),
            host_path=os.environ.get("WAYBILL_E2E_HOSTPATH", ""),
        )

    def volume(self, namespace: str, claim: str) -> Object | None:
        """A volume in the folder of this machine for one claim, if there is such a folder."""
        if not self.host_path:
            return None
        folder = Path(self.host_path) / namespace / claim
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)  # a node does not give such a folder to the group of a pod
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{namespace}-{claim}"},
            "spec": {
                "capacity": {"storage": "100Gi"},
                "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
                "claimRef": {"namespace": namespace, "name": claim},
                "hostPath": {"path": str(folder)},
                "storageClassName": "",
            },
        }

    def forget(self, namespace: str) -> None:
        if self.host_path:
            shutil.rmtree(Path(self.host_path) / namespace, ignore_errors=True)


def the_cluster(folder: Path) -> Cluster:
    """The cluster of `$KUBECONFIG`."""
    kubeconfig = _given("KUBECONFIG", "how to log in to a cluster that may be tried")
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    kubectl = shutil.which("kubectl") or (shutil.which("kubectl", path=assets) if assets else None)
    if kubectl is None:
        pytest.fail("there is no kubectl on the path, nor in $KUBEBUILDER_ASSETS", pytrace=False)
    return Cluster(Path(kubeconfig), kubectl=kubectl, folder=folder)


def _given(name: str, meaning: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        pytest.fail(_MISSING.format(name, meaning), pytrace=False)
    return value
