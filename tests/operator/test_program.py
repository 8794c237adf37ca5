"""The operator as a process: it starts without anything else, serves, and ends when it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.certificates import Authority
from support.child_processes import NO_METRICS, free_port, kill_with_children
from support.cluster_server import ClusterServer
from support.controllers import deployment, put_pod, replicas, write_template
from support.patience import eventually, until
from support.zygote import Program
from waybill.cluster import ClusterApi
from waybill.cluster.resources import DEPLOYMENTS, LEASES, PODS, WORKER_POOLS

NO_DATABASE = "postgresql://nobody@127.0.0.1:1/none"


class Process:
    def __init__(self, folder: Path, database_url: str, name: str) -> None:
        self.metrics_port, self.api_port = free_port(), free_port()
        self.log = folder / f"{name}.log"
        self._environment = {
            **os.environ,
            **NO_METRICS,
            "WAYBILL_DATABASE_URL": database_url,
            "POD_NAMESPACE": "default",
            "POD_NAME": name,
            "WAYBILL_OPERATOR_CONFIG_DIR": str(folder / "etc"),
            "WAYBILL_OPERATOR_TLS_DIR": str(folder / "tls"),
            "WAYBILL_OPERATOR_NAME_PREFIX": "rel-waybill",
            "WAYBILL_OPERATOR_METRICS_PORT": str(self.metrics_port),
            "WAYBILL_OPERATOR_METRICS_API_PORT": str(self.api_port),
            "WAYBILL_OPERATOR_METRICS_API_HOST": "127.0.0.1",
            "WAYBILL_LOG_FORMAT": "json",
        }

    def start(self, *arguments: str) -> Program:
        with self.log.open("ab") as output:
            return Program("waybill_operator", *arguments, env=self._environment, output=output, cwd=self.log.parent)

    @contextmanager
    def running(self, *arguments: str) -> Iterator[Program]:
        process = self.start(*arguments)
        try:
            yield process
        finally:
            kill_with_children(process)

    async def get(self, path: str) -> tuple[int, str]:
        def ask() -> tuple[int, str]:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}{path}", timeout=5) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()
            except OSError:
                return 0, ""

        return await asyncio.to_thread(ask)

    async def until_ready(self) -> None:
        async def ready() -> bool:
            return (await self.get("/readyz"))[0] == 200

        await eventually(ready, within=60, what=self.log.read_text() if self.log.exists() else "")


@pytest.fixture
def folder(cluster: ClusterServer, tmp_path: Path) -> Path:
    write_template(tmp_path / "etc", default_pool={"autoscaling": {"minReplicas": 1, "maxReplicas": 5}})
    Authority("servers").issue(tmp_path / "tls", "metrics", server=True)
    return tmp_path


async def ended(process: Program) -> int:
    return await asyncio.to_thread(process.wait, 30)


async def test_it_keeps_the_default_pool_and_ends_within_seconds(
    cluster: ClusterServer, folder: Path, database_url: str
) -> None:
    one = Process(folder, database_url, "op-1")
    with one.running() as process:
        await one.until_ready()
        await until(lambda: deployment(cluster) is not None)
        status, said = await one.get("/metrics")
        assert status == 200
        assert "waybill_operator_leader 1.0" in said

        async def wanted() -> bool:
            return 'waybill_workers_wanted{pool="default"} 0.0' in (await one.get("/metrics"))[1]

        await eventually(wanted)
        lease = cluster.object(LEASES, "rel-waybill-operator")
        assert lease is not None
        assert lease["spec"]["holderIdentity"].startswith("op-1_")
        began = asyncio.get_running_loop().time()
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == 0
        assert asyncio.get_running_loop().time() - began < 8
    assert (cluster.object(LEASES, "rel-waybill-operator") or {})["spec"]["holderIdentity"] == ""
    assert "a-token-of-the-tests" not in one.log.read_text()
    assert "Traceback" not in one.log.read_text()


async def test_it_is_ready_without_a_database_since_discovery_must_be_answered(
    cluster: ClusterServer, folder: Path
) -> None:
    one = Process(folder, NO_DATABASE, "op-1")
    with one.running():
        await one.until_ready()
        assert (await one.get("/livez"))[0] == 200
        await until(lambda: deployment(cluster) is not None)

        def connect() -> None:
            socket.create_connection(("127.0.0.1", one.api_port), 5).close()

        await asyncio.to_thread(connect)


async def test_it_is_not_ready_without_a_certificate_a_template_or_the_pools(
    cluster: ClusterServer, folder: Path
) -> None:
    (folder / "tls/tls.crt").unlink()
    (folder / "etc/worker-template.yaml").unlink()
    cluster.refuse("GET", "/workerpools$", 403, times=-1, message="workerpools is forbidden")
    one = Process(folder, NO_DATABASE, "op-1")
    with one.running():

        async def explained() -> str:
            said = (await one.get("/readyz"))[1]
            return said if "workerpools is forbidden" in said and "certificate" in said else ""

        said = await eventually(explained, within=60)
        assert "configuration: " in said
        assert (await one.get("/livez"))[0] == 200
        cluster.refuse_nothing()
        Authority("servers").issue(folder / "tls", "metrics", server=True)
        write_template(folder / "etc")
        await one.until_ready()


async def test_a_second_replica_takes_over_from_one_that_is_killed(
    cluster: ClusterServer, api: ClusterApi, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Process(folder, NO_DATABASE, "op-1"), Process(folder, NO_DATABASE, "op-2")
    with one.running() as first:
        await until(lambda: deployment(cluster) is not None, within=60)
        with other.running():
            await other.until_ready()
            first.send_signal(signal.SIGKILL)
            pool = cluster.object(WORKER_POOLS, "default")
            assert pool is not None
            await cluster.put(WORKER_POOLS, {**pool, "spec": {**pool["spec"], "replicas": 3}})
            await until(lambda: replicas(cluster) == 3, within=60)


async def test_outside_of_a_cluster_it_says_what_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG")
    one = Process(folder, NO_DATABASE, "op-1")
    with one.running() as process:
        assert await ended(process) == 2
    assert "KUBECONFIG is not set" in one.log.read_text()


async def test_a_port_that_is_taken_is_named(cluster: ClusterServer, folder: Path) -> None:
    one = Process(folder, NO_DATABASE, "op-1")
    with socket.create_server(("127.0.0.1", one.api_port)), one.running() as process:
        assert await ended(process) == 2
    said = one.log.read_text()
    assert "WAYBILL_OPERATOR_METRICS_API_PORT" in said
    assert "exc_type" not in said


# Uninstall


async def test_uninstall_takes_the_operators_place_and_leaves_no_pool_behind(
    cluster: ClusterServer, api: ClusterApi, folder: Path
) -> None:
    await cluster.put(DEPLOYMENTS, {"metadata": {"name": "rel-waybill-operator"}, "spec": {"replicas": 2}})
    await put_pod(cluster, "w1")
    one, job = Process(folder, NO_DATABASE, "op-1"), Process(folder, NO_DATABASE, "uninstall")
    with one.running() as operator:
        await until(lambda: deployment(cluster) is not None, within=60)
        with job.running("uninstall") as process:
            await until(lambda: (cluster.object(DEPLOYMENTS, "rel-waybill-operator") or {})["spec"]["replicas"] == 0)
            operator.send_signal(signal.SIGTERM)  # as its Deployment would
            await until(lambda: replicas(cluster) == 0, within=60)
            assert process.poll() is None, "it waits for the worker"
            await cluster.remove(PODS, "w1")
            assert await ended(process) == 0
    assert cluster.objects(WORKER_POOLS) == {}


async def test_uninstall_works_without_an_operator(cluster: ClusterServer, folder: Path) -> None:
    pool = {"metadata": {"name": "heavy", "finalizers": ["waybill.dev/drain"]}, "spec": {}}
    await cluster.put(WORKER_POOLS, pool)
    theirs = {"metadata": {"name": "theirs", "labels": {"waybill.dev/operator": "other"}}, "spec": {}}
    await cluster.put(WORKER_POOLS, theirs)
    await cluster.put(
        LEASES,
        {"metadata": {"name": "rel-waybill-operator"}, "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1}},
    )
    job = Process(folder, NO_DATABASE, "uninstall")
    with job.running("uninstall") as process:
        assert await ended(process) == 0
    assert list(cluster.objects(WORKER_POOLS)) == ["theirs"]


async def test_uninstall_with_nothing_installed_is_no_failure(cluster: ClusterServer, folder: Path) -> None:
    cluster.refuse("GET", "/workerpools", 404, times=-1)
    job = Process(folder, NO_DATABASE, "uninstall")
    with job.running("uninstall") as process:
        assert await ended(process) == 0


async def test_an_uninstall_that_is_interrupted_gives_the_operator_its_replicas_back(
    cluster: ClusterServer, folder: Path
) -> None:
    await cluster.put(DEPLOYMENTS, {"metadata": {"name": "rel-waybill-operator"}, "spec": {"replicas": 2}})
    await cluster.put(WORKER_POOLS, {"metadata": {"name": "heavy", "finalizers": ["theirs"]}, "spec": {}})
    job = Process(folder, NO_DATABASE, "uninstall")

    def operator_replicas() -> int:
        return int((cluster.object(DEPLOYMENTS, "rel-waybill-operator") or {})["spec"]["replicas"])

    with job.running("uninstall") as process:
        await until(lambda: operator_replicas() == 0, within=60)
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == 1
    assert operator_replicas() == 2
