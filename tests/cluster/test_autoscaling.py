"""A real HorizontalPodAutoscaler follows the backlog in a real Postgres, by the operator's metrics API."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from support.cluster import Object, Refused
from support.patience import wait_until
from support.server import embedded
from support.tried_release import METRICS_API, PROCESS, TriedRelease
from waybill_cli.local.postgres import EmbeddedPostgres

QUICK: Object = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 10, "periodSeconds": 2}], "stabilizationWindowSeconds": 0},
    "scaleDown": {"policies": [{"type": "Pods", "value": 10, "periodSeconds": 2}], "stabilizationWindowSeconds": 5},
}
VALUES: Object = {
    "worker": {
        **PROCESS,
        "autoscaling": {"minReplicas": 1, "maxReplicas": 4, "drainTargetSeconds": 15, "behavior": QUICK},
    },
}


@pytest.fixture(scope="module")
def own_server() -> Iterator[EmbeddedPostgres]:
    with embedded() as server:
        yield server


@pytest.fixture(scope="module")
def module_database_url(own_server: EmbeddedPostgres) -> str:
    return own_server.create_database("waybill")


def test_the_metrics_api_answers_through_the_api_server(tried: TriedRelease) -> None:
    path = "/apis/external.metrics.k8s.io/v1beta1"
    listed = json.loads(tried.cluster.kubectl("get", "--raw", path))
    assert [each["name"] for each in listed["resources"]] == ["waybill_workers_wanted"]
    [item] = _metric(tried, "pool=default")["items"]
    assert item["metricName"] == "waybill_workers_wanted"
    assert item["value"] == "0"
    with pytest.raises(Refused, match="NotFound"):
        _metric(tried, "pool=nobody")


def test_only_the_autoscaler_and_admins_may_ask_for_metrics(tried: TriedRelease) -> None:
    theirs = f"--kubeconfig={tried.cluster.account('default', tried.namespace)}"
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{tried.namespace}/waybill_workers_wanted"
    with pytest.raises(Refused, match="forbidden"):
        tried.cluster.kubectl("get", "--raw", path, theirs)
    allowed = tried.cluster.kubectl(
        "auth",
        "can-i",
        "list",
        "waybill_workers_wanted.external.metrics.k8s.io",
        f"--namespace={tried.namespace}",
        "--as=system:serviceaccount:kube-system:horizontal-pod-autoscaler",
    )
    assert allowed.strip() == "yes"


def test_five_hundred_jobs_start_workers_and_their_end_stops_them(tried: TriedRelease) -> None:
    tried.until_pool("default", "Ready")
    assert tried.replicas() == 1
    tried.enqueue(500, steps=20)
    wait_until(lambda: tried.replicas() == 4, "the autoscaler asks for all the workers it may", within=120, every=0.5)
    wait_until(lambda: len(_ready(tried)) > 1, "more than one runs", within=180, every=0.5)
    wait_until(lambda: _states(tried) == {"succeeded": 500}, "all jobs are done", within=400, every=1)
    wait_until(lambda: tried.replicas() == 1, "the autoscaler gives the workers back", within=120, every=0.5)
    wait_until(lambda: len(tried.release.pods("worker")) == 1, "they stop", within=60, every=0.5)
    events = tried.sql(lambda connection: connection.fetch("SELECT event, count(*) FROM job_events GROUP BY event"))
    assert [tuple(row) for row in events] == [("succeeded", 500)], "scaling costs no run"

    patched = Counter(
        event["objectRef"]["name"]
        for event in tried.requests(tried.account)
        if event["verb"] == "patch" and event["objectRef"]["resource"] == "pods"
    )
    assert patched, "busy pods are marked"
    assert max(patched.values()) <= 4, f"marks follow busy and idle, not jobs: {patched}"


def test_scaling_down_takes_the_idle_worker(tried: TriedRelease) -> None:
    tried.apply_pool("slow", concurrency=1, queues=["default"], kinds=["selftest"], autoscaling={"source": "none"})
    # The workers of the other pool must not take the job.
    tried.cluster.patch("workerpool", "default", {"spec": {"kinds": ["convert_pdf"]}}, tried.namespace)
    tried.cluster.kubectl("rollout", "status", "deployment/waybill-worker", f"--namespace={tried.namespace}")
    _scale(tried, "slow", 3)
    tried.cluster.wait("jsonpath={.status.readyReplicas}=3", "workerpool/slow", namespace=tried.namespace)
    tried.enqueue(1, steps=150)
    busy: list[str] = []

    def runs() -> bool:
        busy[:] = [
            row["pod_name"]
            for row in tried.sql(
                lambda connection: connection.fetch(
                    "SELECT w.pod_name FROM jobs j JOIN workers w ON w.id = j.lease_owner WHERE j.state = 'running'"
                )
            )
        ]
        return bool(busy)

    wait_until(runs, "a worker runs the job", every=0.2)
    _scale(tried, "slow", 1)
    wait_until(lambda: len(_pods_of_slow(tried)) == 1, "the others are gone", every=0.5)
    assert _pods_of_slow(tried) == busy
    assert _states(tried) == {"succeeded": 500, "running": 1}


def test_without_its_database_it_scales_nothing(tried: TriedRelease, own_server: EmbeddedPostgres) -> None:
    """The metrics API says what is wrong, and the autoscaler leaves things as they are."""
    tried.cluster.wait("condition=ScalingActive", "hpa/waybill-worker", namespace=tried.namespace)
    replicas = tried.replicas()
    own_server.stop("immediate")
    try:
        wait_until(lambda: _refusal(tried) != "", "the metrics API says that it knows nothing", within=60, every=0.5)
        assert "ServiceUnavailable" in _refusal(tried)
        assert "database" in _refusal(tried).lower()
        tried.cluster.wait("condition=ScalingActive=False", "hpa/waybill-worker", namespace=tried.namespace, within=120)
        tried.cluster.wait("condition=Available", f"apiservice/{METRICS_API}")
        tried.until_pool("default", "Measured", "False")
    finally:
        own_server.start()
    tried.cluster.wait("condition=ScalingActive", "hpa/waybill-worker", namespace=tried.namespace, within=120)
    assert tried.replicas() == replicas


def _metric(tried: TriedRelease, selector: str) -> Object:
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{tried.namespace}/waybill_workers_wanted"
    found: Object = json.loads(
        tried.cluster.kubectl("get", "--raw", f"{path}?labelSelector={selector.replace('=', '%3D')}")
    )
    return found


def _refusal(tried: TriedRelease) -> str:
    try:
        _metric(tried, "pool=default")
    except Refused as refused:
        return str(refused)
    return ""


def _scale(tried: TriedRelease, pool: str, count: int) -> None:
    tried.cluster.kubectl("scale", f"workerpool/{pool}", f"--replicas={count}", f"--namespace={tried.namespace}")


def _ready(tried: TriedRelease) -> list[Object]:
    return [
        pod
        for pod in tried.release.pods("worker")
        if any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))
    ]


def _pods_of_slow(tried: TriedRelease) -> list[str]:
    pods = tried.cluster.list("pods", tried.namespace, "waybill.dev/pool=slow")
    return [pod["metadata"]["name"] for pod in pods]


def _states(tried: TriedRelease) -> dict[str, int]:
    rows = tried.sql(lambda connection: connection.fetch("SELECT state, count(*) FROM jobs GROUP BY state"))
    return {row["state"]: row["count"] for row in rows}
