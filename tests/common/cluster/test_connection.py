"""Where the way to the cluster comes from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.cluster_server import ClusterServer
from waybill.cluster import NotReachable, cluster_api, in_reach, own_namespace
from waybill.cluster.resources import PODS


async def test_outside_of_a_cluster_a_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert not in_reach()
    with pytest.raises(NotReachable, match="KUBECONFIG is not set"):
        async with cluster_api():
            pass


@pytest.mark.parametrize("text", ["", "just words", "{]", "clusters: []\ncontexts: []\nusers: []\n", None])
async def test_a_kubeconfig_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert in_reach()
    with pytest.raises(NotReachable, match=r"The way to the cluster cannot be read"):
        async with cluster_api():
            pass


async def test_a_service_account_is_used_where_a_pod_has_one(
    cluster: ClusterServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its token is sent, and read again when the kubelet replaces it."""
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setattr("waybill.cluster.connection._ACCOUNT", tmp_path)
    assert not in_reach(), "there is no token"
    (tmp_path / "token").write_text("a token")
    (tmp_path / "namespace").write_text("here\n")
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    assert in_reach()
    assert own_namespace() == "here"


async def test_the_server_learns_who_asks(cluster: ClusterServer) -> None:
    async with cluster_api("waybill-janitor") as api:
        await api.list(PODS, "default")
    assert cluster.headers[-1]["User-Agent"].startswith("waybill-janitor/")
    assert cluster.headers[-1]["Authorization"] == "Bearer a-token-of-the-tests"


def test_neither_the_client_nor_a_web_framework_is_imported_for_nothing() -> None:
    script = (
        "import sys, waybill.cluster\n"
        "print([name for name in ('kubernetes', 'aiohttp', 'fastapi', 'starlette', 'httpx') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
