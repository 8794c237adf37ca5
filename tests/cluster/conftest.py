"""One control plane for all tests of a run, and releases of the chart in it."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import on_server
from support.cluster import Cluster, Object, Refused
from support.control_plane import ControlPlane, control_plane
from support.process_node import ProcessNode, process_node
from support.release import Release, merged
from support.server import Maintenance
from support.tried_release import METRICS_API, REAL, TriedRelease, installed

DEFINITION = "workerpools.waybill.dev"

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever lies in this folder needs the control plane, so it runs in `make test-cluster` alone."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("cluster")
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Cluster]]:
    with control_plane(tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture(scope="session")
def plane(_running: tuple[ControlPlane, Cluster]) -> ControlPlane:
    return _running[0]


@pytest.fixture(scope="session")
def cluster(_running: tuple[ControlPlane, Cluster]) -> Cluster:
    return _running[1]


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    with cluster.namespace() as name:
        yield name


@pytest.fixture
def node(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[ProcessNode]:
    with process_node(plane, cluster, tmp_path / "pods") as running:
        yield running


@pytest.fixture(scope="module")
def module_node(
    plane: ControlPlane, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessNode]:
    with process_node(plane, cluster, tmp_path_factory.mktemp("pods")) as running:
        yield running


@pytest.fixture(scope="module")
def module_database_url(server_url: str, maintenance: Maintenance) -> Iterator[str]:
    """An empty database; the chart's migration makes the schema."""
    name = f"waybill_release_{os.getpid()}_{next(_numbers)}"
    maintenance.execute(f"CREATE DATABASE {name}")
    yield on_server(server_url, name)
    maintenance.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def release(
    cluster: Cluster, namespace: str, node: ProcessNode, tmp_path: Path, empty_database_url: str
) -> Iterator[Release]:
    """A release that is not installed yet."""
    with prepared(cluster, namespace, tmp_path, empty_database_url, REAL) as made:
        yield made


@pytest.fixture(scope="module")
def tried(
    cluster: Cluster,
    plane: ControlPlane,
    module_node: ProcessNode,
    module_database_url: str,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[TriedRelease]:
    """A release for the tests of a file. The file's `VALUES` are merged into its values."""
    values = merged(REAL, getattr(request.module, "VALUES", {}))
    folder = tmp_path_factory.mktemp("release")
    with (
        cluster.namespace() as namespace,
        prepared(cluster, namespace, folder, module_database_url, values) as release,
        installed(release, plane, module_node, module_database_url) as running,
    ):
        yield running
        release.uninstall()


@contextmanager
def prepared(cluster: Cluster, namespace: str, folder: Path, database_url: str, values: Object) -> Iterator[Release]:
    """A release on this database, with a volume for what it claims."""
    volume = _volume(namespace, "waybill-storage")
    cluster.create(volume)
    basis: Object = {
        "image": {"registry": "example.invalid"},
        "postgres": {"enabled": False},
        "database": {"url": database_url},
        "storage": {"volume": {"storageClass": "-"}},
    }
    try:
        yield Release(cluster, namespace, folder, merged(basis, values))
    finally:
        _forget(cluster)
        cluster.delete("persistentvolume", volume["metadata"]["name"], wait=False)


def _forget(cluster: Cluster) -> None:
    """Remove what a cluster has once, and a test that failed may have left.

    A broken APIService would keep every namespace from being deleted, and the next release refuses a definition that
    is not its own.
    """
    cluster.delete("apiservice", METRICS_API, wait=False)
    if cluster.find("crd", DEFINITION) is None:
        return
    for pool in cluster.list("workerpools"):
        with contextlib.suppress(Refused):  # it may go in the meantime
            where = pool["metadata"]["namespace"]
            cluster.patch("workerpool", pool["metadata"]["name"], {"metadata": {"finalizers": []}}, where)
    cluster.delete("crd", DEFINITION)


def _volume(namespace: str, claim: str) -> Object:
    """A volume that nothing but this claim gets."""
    name = f"{namespace}-{claim}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "claimRef": {"namespace": namespace, "name": claim},
            "hostPath": {"path": f"/{name}"},
            "storageClassName": "",
        },
    }
