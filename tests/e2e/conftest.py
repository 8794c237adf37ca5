"""One release of the chart in a real cluster, for the tests of a run, which build on one another."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from support.cluster import Cluster
from support.installed_waybill import InstalledWaybill, describe, installed_waybill
from support.real_cluster import RealCluster, the_cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever lies in this folder needs a cluster, so it runs in `make test-e2e` alone."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("e2e")
            item.add_marker(pytest.mark.timeout(1800))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure what the cluster looks like."""
    report = yield
    running = getattr(item, "funcargs", {}).get("waybill")
    if report.when == "call" and report.failed and isinstance(running, InstalledWaybill):
        report.sections.append(("the cluster", describe(running.release)))
    return report


@pytest.fixture(scope="session")
def real() -> RealCluster:
    return RealCluster.from_environment()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return the_cluster(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="session")
def waybill(
    cluster: Cluster, real: RealCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InstalledWaybill]:
    """An installed release. With WAYBILL_E2E_KEEP=1 it stays, to be looked at."""
    keep = os.environ.get("WAYBILL_E2E_KEEP") == "1"
    with installed_waybill(cluster, real, tmp_path_factory.mktemp("release"), keep=keep) as running:
        yield running
