"""An API server for each test, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.cluster_server import ClusterServer, cluster_server
from waybill.cluster import ClusterApi, cluster_api
from waybill.telemetry.metrics import CATALOGUE


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ClusterServer]:
    async with cluster_server(tmp_path) as (server, kubeconfig):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield server


@pytest.fixture
async def api(cluster: ClusterServer) -> AsyncIterator[ClusterApi]:
    async with cluster_api("a test") as connected:
        yield connected


@pytest.fixture(autouse=True)
def _fresh_metrics() -> None:
    for metric in CATALOGUE:
        metric.reset()
