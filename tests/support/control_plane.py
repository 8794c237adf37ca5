"""A real control plane on loopback: etcd, API server, controller manager, scheduler, and kwok instead of nodes.

`$KUBEBUILDER_ASSETS` is the folder with the programs. Everything listens on free ports of loopback, lives in one
folder, and ends with the block, or with this process if that is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.child_processes import dying_with_us, free_port
from support.cluster import Cluster
from support.cluster_certificates import Authority, KeyPair, signing_key
from support.kubeconfig import write_kubeconfig
from support.patience import wait_until

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
NODES = ("node-a", "node-b")

_NODE_LABELS = {"kubernetes.io/os": "linux", "type": "kwok"}
# What the tests ask the audit log: the requests of service accounts that are not the control plane's own.
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


def programs() -> dict[str, str]:
    """Where each program is: in that folder, or else on the path. Fails the test if one is missing."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    needs = f"set it to a folder with {', '.join(PROGRAMS[:-1])} and {PROGRAMS[-1]} (docs/testing-in-a-cluster.md)"
    if not given:
        pytest.fail(f"KUBEBUILDER_ASSETS is not set; {needs}", pytrace=False)
    folder = str(Path(given).expanduser().resolve())
    found = {name: shutil.which(name, path=folder) or shutil.which(name) for name in PROGRAMS}
    if missing := [name for name, path in found.items() if path is None]:
        pytest.fail(f"KUBEBUILDER_ASSETS={given} lacks {', '.join(missing)}; {needs}", pytrace=False)
    return {name: path for name, path in found.items() if path}


class ControlPlane:
    """The programs. Tests that break the control plane stop and start them."""

    def __init__(self, programs: dict[str, str], folder: Path) -> None:
        self._programs = programs
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = {name: free_port() for name in ("etcd", "etcd-peers", *PROGRAMS[1:])}
        self.url = f"https://127.0.0.1:{self._ports['kube-apiserver']}"
        self._authority = Authority(folder, "cluster-authority")
        self._front_proxy = Authority(folder, "front-proxy-authority")
        self._token_key, self._token_public = signing_key(folder)
        hosts = ("localhost", "127.0.0.1", "10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
        self._serving = self._authority.issue("kube-apiserver", hosts=hosts)
        self._proxying = self._front_proxy.issue("front-proxy-client")
        self.admin = self._authority.issue("admin", group="system:masters")
        self.kubeconfig = self._login("admin", self.admin)
        self.audit_log = folder / "audit.log"
        (folder / "audit.yaml").write_text(json.dumps(_AUDIT))

    @property
    def authority(self) -> Path:
        return self._authority.certificate

    def start(self) -> None:
        self.start_api_server(with_etcd=True)
        for name in ("kube-controller-manager", "kube-scheduler"):
            self._login(f"system:{name}", self._authority.issue(f"system:{name}"))
        self._run("kube-controller-manager", *self._controllers())
        self._run("kube-scheduler", *self._scheduler())
        self._run("kwok", *self._kwok())
        self._await_healthy("kube-controller-manager", "kube-scheduler")

    def start_api_server(self, *, with_etcd: bool = False) -> None:
        if with_etcd:
            self._run("etcd", *self._etcd())
        self._run("kube-apiserver", *self._api_server())
        with httpx.Client(base_url=self.url, verify=False, trust_env=False, timeout=5) as client:  # noqa: S501
            self._await_answer(client, "/readyz", "kube-apiserver")

    def stop(self, name: str) -> None:
        """Kill a program without a chance to shut down."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        for name in reversed(list(self._running)):
            self.stop(name)

    def http(self) -> httpx.Client:
        """An admin's connection to the API server."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(self.admin.certificate, self.admin.key)
        return httpx.Client(base_url=self.url, verify=context, trust_env=False, timeout=30)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-4000:]

    def _run(self, name: str, *arguments: str) -> None:
        command = dying_with_us([self._programs[name], *arguments])
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )

    def _login(self, name: str, pair: KeyPair) -> Path:
        path = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        return write_kubeconfig(path, self.url, self.authority, user)

    def _etcd(self) -> list[str]:
        client, peers = (f"http://127.0.0.1:{self._ports[name]}" for name in ("etcd", "etcd-peers"))
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports['kube-apiserver']}",
            "--endpoint-reconciler-type=none",
            # With an etcd before 3.5 the API server offers streamed lists and then refuses them.
            "--feature-gates=WatchList=false",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            f"--client-ca-file={self.authority}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={self._token_public}",
            f"--service-account-signing-key-file={self._token_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--requestheader-client-ca-file={self._front_proxy.certificate}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={self._proxying.certificate}",
            f"--proxy-client-key-file={self._proxying.key}",
            f"--audit-policy-file={self.folder / 'audit.yaml'}",
            f"--audit-log-path={self.audit_log}",
        ]

    def _controllers(self) -> list[str]:
        """Autoscalers look every two seconds and forget high demand after five, so that tests see them act."""
        login = self.folder / "system-kube-controller-manager.kubeconfig"
        return [
            f"--kubeconfig={login}",
            f"--authentication-kubeconfig={login}",
            f"--authorization-kubeconfig={login}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports['kube-controller-manager']}",
            "--leader-elect=false",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._token_key}",
            f"--root-ca-file={self.authority}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--horizontal-pod-autoscaler-sync-period=2s",
            "--horizontal-pod-autoscaler-downscale-stabilization=5s",
        ]

    def _scheduler(self) -> list[str]:
        login = self.folder / "system-kube-scheduler.kubeconfig"
        return [
            f"--kubeconfig={login}",
            f"--authentication-kubeconfig={login}",
            f"--authorization-kubeconfig={login}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports['kube-scheduler']}",
            "--leader-elect=false",
        ]

    def _kwok(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--config={Path(__file__).parent / 'fake_node.yaml'}",
            "--manage-nodes-with-label-selector=type=kwok",
            "--node-lease-duration-seconds=40",
        ]

    def _await_healthy(self, *names: str) -> None:
        for name in names:
            url = f"https://127.0.0.1:{self._ports[name]}"
            with httpx.Client(base_url=url, verify=False, trust_env=False, timeout=5) as client:  # noqa: S501
                self._await_answer(client, "/healthz", name)

    def _await_answer(self, client: httpx.Client, path: str, name: str) -> None:
        def answers() -> bool:
            assert self._running[name].poll() is None, f"{name} ended:\n{self.log(name)}"
            with contextlib.suppress(httpx.TransportError):
                return client.get(path).status_code == 200
            return False

        wait_until(answers, f"{name} is ready", within=180, every=0.05)


@contextmanager
def control_plane(folder: Path) -> Iterator[tuple[ControlPlane, Cluster]]:
    """Run a control plane with two nodes that are Ready."""
    found = programs()
    folder.mkdir(parents=True, exist_ok=True)
    plane = ControlPlane(found, folder)
    try:
        plane.start()
        cluster = Cluster(plane.kubeconfig, kubectl=found["kubectl"], folder=folder)
        for name in NODES:
            labels = {**_NODE_LABELS, "kubernetes.io/hostname": name}
            cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
        cluster.wait("condition=Ready", *(f"node/{name}" for name in NODES))
        yield plane, cluster
    finally:
        plane.close()
