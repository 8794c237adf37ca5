"""Workers whose pod is dead give their jobs back, as far as the cluster lets the janitor look."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from support.cluster_server import ClusterServer, cluster_server
from support.engine import events, one_job, row, take
from support.janitor import Janitor
from support.pods import container, pod, restarted_after, running, stamp
from waybill.cluster.resources import PODS
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.janitor import history
from waybill.janitor.models import TaskOutcome
from waybill_engine.lease import WorkerInfo, register
from waybill_janitor.run import plan
from waybill_janitor.tasks.pods import Pods


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ClusterServer]:
    async with cluster_server(tmp_path) as (server, kubeconfig):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield server


async def busy_worker(connection: Connection, name: str, namespace: str = "waybill") -> tuple[WorkerInfo, uuid.UUID]:
    """A worker in a pod, and the job that it runs."""
    job_id = await one_job(connection)
    worker = WorkerInfo(
        id=new_id(),
        name=f"{name}:1",
        host=name,
        pid=1,
        version="test",
        queues=["default"],
        kinds=["work"],
        concurrency=1,
        pod_namespace=namespace,
        pod_name=name,
        pod_uid=f"uid-of-{name}",
        node_started_at=datetime.now(UTC),
    )
    await register(connection, worker, 60.0)
    assert [one.id for one in await take(connection, worker, 1)] == [job_id]
    return worker, job_id


async def show(cluster: ClusterServer, connection: Connection, worker: WorkerInfo, told: dict[str, Any]) -> None:
    """Have the server tell this of the worker's pod. Its uid is of the server's making."""
    assert worker.pod_namespace
    told["metadata"] |= {"name": worker.pod_name, "namespace": worker.pod_namespace}
    stored = await cluster.put(PODS, told, worker.pod_namespace)
    await connection.execute("UPDATE workers SET pod_uid = $1 WHERE id = $2", stored["metadata"]["uid"], worker.id)


def evicted_pod() -> dict[str, Any]:
    return pod("Failed", reason="Evicted")


async def test_an_oom_killed_worker_is_settled_and_one_that_runs_is_not(
    cleaner: Janitor, hot: Connection, cluster: ClusterServer
) -> None:
    killed, greedy = await busy_worker(hot, "killed")
    evicted, innocent = await busy_worker(hot, "evicted")
    alive, at_work = await busy_worker(hot, "alive")
    assert killed.node_started_at is not None
    assert alive.node_started_at is not None
    await show(cluster, hot, killed, restarted_after(killed.node_started_at, 137, "OOMKilled"))
    await show(cluster, hot, evicted, evicted_pod())
    await show(cluster, hot, alive, pod("Running", container(running(stamp(alive.node_started_at)))))

    report = (await cleaner.run([Pods(cleaner.tools)]))["pods"]

    assert report.done == {"workers": 2, "crashed": 1, "released": 1}
    assert report.found == {"workers_in_pods": 3.0, "workers_not_looked_at": 0.0}
    assert await events(hot, greedy) == ["crashed"]
    assert "more memory than it may" in (await row(hot, greedy))["error_message"]
    assert await events(hot, innocent) == ["released"]
    assert await events(hot, at_work) == []
    assert len(cluster.asked("GET", PODS.path("waybill"))) == 1, "one list of pods"
    again = (await cleaner.run([Pods(cleaner.tools)]))["pods"]
    assert (again.done, again.found["workers_in_pods"]) == ({}, 1.0)
    assert (await history.figures(hot)).totals["pods", "workers"] == 2


async def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    cleaner: Janitor, hot: Connection, cluster: ClusterServer
) -> None:
    worker, job_id = await busy_worker(hot, "evicted")
    await show(cluster, hot, worker, evicted_pod())
    (report,) = await plan([Pods(cleaner.tools)], lambda _: None, task_limit=600)
    assert report.planned == 1
    assert (await row(hot, job_id))["state"] == "running"


async def test_without_the_right_to_list_pods_leases_decide_and_a_line_says_so(
    cleaner: Janitor, hot: Connection, cluster: ClusterServer
) -> None:
    stranger, elsewhere = await busy_worker(hot, "evicted", "elsewhere")
    worker, here = await busy_worker(hot, "evicted")
    for one in (stranger, worker):
        await show(cluster, hot, one, evicted_pod())
    cluster.refuse("GET", "/namespaces/elsewhere/pods", 403, message="pods is forbidden")

    with capture_logs() as lines:
        report = (await cleaner.run([Pods(cleaner.tools)]))["pods"]

    assert report.outcome is TaskOutcome.DONE
    assert report.done == {"workers": 1, "released": 1}
    assert report.found == {"workers_in_pods": 2.0, "workers_not_looked_at": 1.0}
    assert (await row(hot, elsewhere))["state"] == "running"
    assert (await row(hot, here))["state"] == "queued"
    (line,) = [one for one in lines if one["event"] == "leases_decide"]
    assert line["namespaces"] == ["elsewhere"]
    assert "pods is forbidden" in line["why"]


async def test_while_the_api_server_is_away_leases_decide(
    cleaner: Janitor, hot: Connection, cluster: ClusterServer
) -> None:
    _, job_id = await busy_worker(hot, "evicted")
    for how in ("broken", "gone"):
        if how == "broken":
            cluster.refuse("GET", "pods", 500, times=1_000)
        else:
            await cluster.stop()
        report = (await cleaner.run([Pods(cleaner.tools)]))["pods"]
        assert (report.outcome, report.done) == (TaskOutcome.DONE, {})
        assert report.found["workers_not_looked_at"] == 1.0
    assert (await row(hot, job_id))["state"] == "running"


async def test_outside_of_a_cluster_a_line_says_so_if_workers_are_in_pods(
    cleaner: Janitor, hot: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert "KUBERNETES_SERVICE_HOST" not in os.environ
    with capture_logs() as lines:
        assert (await cleaner.run([Pods(cleaner.tools)]))["pods"].found == {}
    assert not [one for one in lines if one["event"] == "leases_decide"], "no worker is in a pod"
    await busy_worker(hot, "somewhere")
    with capture_logs() as lines:
        report = (await cleaner.run([Pods(cleaner.tools)]))["pods"]
    assert report.outcome is TaskOutcome.DONE
    (line,) = [one for one in lines if one["event"] == "leases_decide"]
    assert "There is no cluster here" in line["why"]


async def test_the_janitor_goes_by_pods_before_it_goes_by_leases(
    cleaner: Janitor, hot: Connection, cluster: ClusterServer
) -> None:
    """An eviction that the lease has survived is still no crash."""
    worker, job_id = await busy_worker(hot, "evicted")
    await hot.execute("UPDATE workers SET lease_expires_at = now() - interval '1 second'")
    await show(cluster, hot, worker, evicted_pod())
    await cleaner.clean()
    assert await events(hot, job_id) == ["released"]
    assert (await row(hot, job_id))["crashes"] == 0
