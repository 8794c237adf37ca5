"""The tests' own control plane does what the other tests in this folder rely on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.cluster import Cluster, Refused
from support.control_plane import ControlPlane, control_plane

SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
SPEC = {"containers": [{"name": "main", "image": "example.invalid/main:1", "securityContext": SAFE}]}


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "test"}}, "spec": {**SPEC, **spec.pop("pod", {})}}
    versions = {"Deployment": "apps/v1", "Job": "batch/v1"}
    return {
        "apiVersion": versions[kind],
        "kind": kind,
        "metadata": {"name": "test"},
        "spec": {"template": template, **spec},
    }


def test_pods_of_a_deployment_run_and_go_away(cluster: Cluster, namespace: str) -> None:
    cluster.create(workload("Deployment", replicas=3, selector={"matchLabels": {"app": "test"}}), namespace)
    cluster.wait("jsonpath={.status.readyReplicas}=3", "deployment/test", namespace=namespace)
    pod = cluster.list("pods", namespace, "app=test")[0]
    [status] = pod["status"]["containerStatuses"]
    assert status["containerID"].startswith("containerd://")
    assert status["state"]["running"]["startedAt"]
    cluster.kubectl("scale", "deployment/test", "--replicas=0", f"--namespace={namespace}")
    cluster.wait("delete", "pod", "--selector=app=test", namespace=namespace)


def test_jobs_complete(cluster: Cluster, namespace: str) -> None:
    cluster.create(workload("Job", pod={"restartPolicy": "Never"}), namespace)
    cluster.wait("condition=Complete", "job/test", namespace=namespace)


def test_a_pod_that_a_test_plays_itself_is_left_alone(cluster: Cluster, namespace: str) -> None:
    annotations = {"tests.waybill.dev/manual": "true"}
    manual = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "manual", "annotations": annotations},
        "spec": SPEC,
    }
    cluster.create(manual, namespace)
    cluster.create({**manual, "metadata": {"name": "played"}}, namespace)
    cluster.wait("condition=Ready", "pod/played", namespace=namespace)
    cluster.wait("condition=PodScheduled", "pod/manual", namespace=namespace)
    assert cluster.get("pod", "manual", namespace)["status"]["phase"] == "Pending"
    cluster.patch("pod", "manual", {"status": {"phase": "Failed", "reason": "Evicted"}}, namespace, "status")
    assert cluster.get("pod", "manual", namespace)["status"]["reason"] == "Evicted"
    cluster.kubectl("delete", "pod", "manual", "--force", "--grace-period=0", f"--namespace={namespace}")


def test_a_pod_that_asks_for_too_much_is_refused(cluster: Cluster, namespace: str) -> None:
    spec = {"containers": [{"name": "main", "image": "example.invalid/main:1"}]}
    with pytest.raises(Refused, match='violates PodSecurity "restricted'):
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "rude"}, "spec": spec}, namespace)


def test_a_service_account_has_its_own_rights_only(cluster: Cluster, plane: ControlPlane, namespace: str) -> None:
    cluster.kubectl("create", "role", "reader", "--verb=list", "--resource=pods", f"--namespace={namespace}")
    cluster.kubectl(
        "create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:default", f"-n{namespace}"
    )
    theirs = f"--kubeconfig={cluster.account('default', namespace)}"
    assert json.loads(cluster.kubectl("get", "pods", "-o", "json", theirs))["items"] == []
    with pytest.raises(Refused, match="forbidden"):
        cluster.kubectl("get", "secrets", theirs)
    user = f"system:serviceaccount:{namespace}:default"
    seen = [json.loads(line) for line in plane.audit_log.read_text().splitlines()]
    codes = {
        (event["verb"], event["objectRef"]["resource"]): event["responseStatus"]["code"]
        for event in seen
        if event["user"]["username"] == user and "objectRef" in event
    }
    assert codes == {("list", "pods"): 200, ("list", "secrets"): 403}


def test_the_api_server_can_be_restarted(cluster: Cluster, plane: ControlPlane, namespace: str) -> None:
    plane.stop("kube-apiserver")
    with pytest.raises(Refused, match="refused"):
        cluster.get("namespace", namespace)
    plane.start_api_server()
    assert cluster.get("namespace", namespace)["status"]["phase"] == "Active"


def test_nothing_is_left_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="in the middle"), control_plane(tmp_path / "short"):
        assert len(_below(tmp_path)) == 5
        raise RuntimeError("in the middle of a test")
    assert _below(tmp_path) == []


def _below(folder: Path) -> list[str]:
    """The programs that work in this folder."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if child.cwd().startswith(str(folder)):
                found.append(child.name())
        except psutil.Error:
            continue
    return found
